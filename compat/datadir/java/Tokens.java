import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.CreateDelegationTokenOptions;
import org.apache.kafka.common.security.auth.KafkaPrincipal;

/** Delegation tokens, which only clients get that have said who they are. */
final class Tokens {
    private Tokens() { }

    private static Admin admin(String address) {
        return Admin.create(Map.<String, Object>of("bootstrap.servers", address, "security.protocol", "SASL_PLAINTEXT", "sasl.mechanism", "PLAIN",
            "sasl.jaas.config", "org.apache.kafka.common.security.plain.PlainLoginModule required username=\"owner\" password=\"secret\";"));
    }

    static void create(String address) throws Exception {
        try (Admin admin = admin(address)) {
            admin.createDelegationToken(new CreateDelegationTokenOptions().renewers(List.of(new KafkaPrincipal("User", "renewer")))).delegationToken().get();
        }
    }

    static void describe(String address, Set<String> lines) throws Exception {
        try (Admin admin = admin(address)) {
            admin.describeDelegationToken().delegationTokens().get().forEach(token ->
                lines.add("token " + token.tokenInfo() + " " + Base64.getEncoder().encodeToString(token.hmac())));
        }
    }
}
