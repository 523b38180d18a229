import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.quota.ClientQuotaFilter;

/** What a directory holds besides topics and groups, a line each, sorted. */
final class Kept {
    private Kept() { }

    static String describe(String address, String sasl) throws Exception {
        TreeSet<String> lines = new TreeSet<>();
        try (Admin admin = Admin.create(Map.<String, Object>of("bootstrap.servers", address))) {
            admin.describeAcls(AclBindingFilter.ANY).values().get().forEach(acl -> lines.add("acl " + acl));
            admin.describeUserScramCredentials().all().get().forEach((user, described) -> described.credentialInfos().forEach(info -> lines.add("scram " + user + " " + info)));
            admin.describeClientQuotas(ClientQuotaFilter.all()).entities().get().forEach((entity, values) -> lines.add("quota " + entity + " " + values));
            admin.describeFeatures().featureMetadata().get().finalizedFeatures().forEach((name, levels) ->
                lines.add("feature " + name + " " + levels.maxVersionLevel()));
            Shared.describe(admin, lines);
            if (sasl != null) {
                Tokens.describe(sasl, lines);
            }
            List<ConfigResource> resources = List.of(new ConfigResource(ConfigResource.Type.CLIENT_METRICS, "subscribed"),
                new ConfigResource(ConfigResource.Type.BROKER, "1"), new ConfigResource(ConfigResource.Type.BROKER, ""));
            admin.describeConfigs(resources).all().get().forEach((resource, config) -> {
                for (ConfigEntry entry : config.entries()) {
                    if (entry.source().name().startsWith("DYNAMIC_")) {
                        lines.add("config " + resource.type() + " " + resource.name() + " " + entry.name() + "=" + entry.value() + " " + entry.source());
                    }
                }
            });
        }
        return String.join("\n", lines);
    }
}
