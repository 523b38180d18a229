package config

// securityRows: security: authorizer, SASL, TLS, tokens.
var securityRows = []Row{
	{
		Name: "authorizer.class.name", Type: String,
		Support: Refused, Reason: noAuthorizer,
		Doc: "The class that decides who may do what; empty lets everyone do everything.",
	},
	{
		Name: "principal.builder.class", Type: Class, Default: "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder", Mode: PerBroker,
		Support: Refused, Reason: noPrincipals,
		Doc: "The class that makes a principal of what a connection proved.",
	},
	{
		Name: "security.providers", Type: String, Default: Null,
		Support: Refused, Use: WithSecurity, Reason: noTLS,
		Doc: "Java classes that add security algorithms.",
	},
	{
		Name: "delegation.token.secret.key", Type: Password, Default: Null,
		Support: Refused, Reason: noTokens,
		Doc: "The secret that signs delegation tokens; without it there are none.",
	},
	{
		Name: "delegation.token.max.lifetime.ms", Type: Long, Default: "604800000", Allowed: atLeast(1),
		Support: Harmless,
		Doc:     "How long a delegation token can live, renewals included.",
	},
	{
		Name: "delegation.token.expiry.time.ms", Type: Long, Default: "86400000", Allowed: atLeast(1),
		Support: Harmless,
		Doc:     "How long a delegation token is good before it must be renewed.",
	},
	{
		Name: "delegation.token.expiry.check.interval.ms", Type: Long, Default: "3600000", Allowed: atLeast(1),
		Support: Harmless,
		Doc:     "How often expired delegation tokens are removed.",
	},
	{
		Name: "sasl.enabled.mechanisms", Type: List, Default: "GSSAPI", Mode: PerBroker,
		Support: Refused, Use: WithSASL, Reason: noSASL,
		Doc: "The SASL mechanisms a client may log in with.",
	},
	{
		Name: "sasl.mechanism.inter.broker.protocol", Type: String, Default: "GSSAPI", Mode: PerBroker,
		Support: Refused, Use: WithSASL, Reason: noSASL,
		Doc: "The SASL mechanism brokers log in with at one another.",
	},
	{
		Name: "sasl.mechanism.controller.protocol", Type: String, Default: "GSSAPI",
		Support: Refused, Use: WithSASL, Reason: noSASL,
		Doc: "The SASL mechanism nodes log in with at the controller.",
	},
	{
		Name: "sasl.jaas.config", Type: Password, Default: Null, Mode: PerBroker,
		Support: Refused, Use: WithSASL, Reason: noSASL,
		Doc: "The login module and its options, in JAAS form.",
	},
	{
		Name: "sasl.login.class", Type: Class, Default: Null,
		Support: Refused, Use: WithSASL, Reason: noSASL,
		Doc: "A class that does the node's own logins.",
	},
	{
		Name: "sasl.login.callback.handler.class", Type: Class, Default: Null,
		Support: Refused, Use: WithSASL, Reason: noSASL,
		Doc: "A class that supplies what a login of the node needs.",
	},
	{
		Name: "sasl.client.callback.handler.class", Type: Class, Default: Null,
		Support: Refused, Use: WithSASL, Reason: noSASL,
		Doc: "A class that answers for the client's side of a SASL exchange.",
	},
	{
		Name: "sasl.server.callback.handler.class", Type: Class, Default: Null,
		Support: Refused, Use: WithSASL, Reason: noSASL,
		Doc: "A class that answers for the server's side of a SASL exchange.",
	},
	{
		Name: "sasl.server.max.receive.size", Type: Int, Default: "524288",
		Support: Refused, Use: WithSASL, Reason: noSASL,
		Doc: "The largest SASL message taken before the login is done.",
	},
	{
		Name: "sasl.login.connect.timeout.ms", Type: Int, Default: Null,
		Support: Refused, Use: WithSASL, Reason: noSASL,
		Doc: "How long a connection to the identity provider may take.",
	},
	{
		Name: "sasl.login.read.timeout.ms", Type: Int, Default: Null,
		Support: Refused, Use: WithSASL, Reason: noSASL,
		Doc: "How long an answer of the identity provider may take.",
	},
	{
		Name: "sasl.login.retry.backoff.ms", Type: Long, Default: "100",
		Support: Refused, Use: WithSASL, Reason: noSASL,
		Doc: "The first pause between tries to reach the identity provider.",
	},
	{
		Name: "sasl.login.retry.backoff.max.ms", Type: Long, Default: "10000",
		Support: Refused, Use: WithSASL, Reason: noSASL,
		Doc: "The longest pause between tries to reach the identity provider.",
	},
	{
		Name: "sasl.login.refresh.window.factor", Type: Double, Default: "0.8", Mode: PerBroker,
		Support: Refused, Use: WithSASL, Reason: noSASL,
		Doc: "After which part of its life a credential is renewed.",
	},
	{
		Name: "sasl.login.refresh.window.jitter", Type: Double, Default: "0.05", Mode: PerBroker,
		Support: Refused, Use: WithSASL, Reason: noSASL,
		Doc: "How much chance plays in when a credential is renewed.",
	},
	{
		Name: "sasl.login.refresh.min.period.seconds", Type: Short, Default: "60", Mode: PerBroker,
		Support: Refused, Use: WithSASL, Reason: noSASL,
		Doc: "The shortest time between two renewals of a credential.",
	},
	{
		Name: "sasl.login.refresh.buffer.seconds", Type: Short, Default: "300", Mode: PerBroker,
		Support: Refused, Use: WithSASL, Reason: noSASL,
		Doc: "How long before its end a credential is renewed at the latest.",
	},
	{
		Name: "sasl.kerberos.service.name", Type: String, Default: Null, Mode: PerBroker,
		Support: Refused, Use: WithSASL, Reason: noSASL,
		Doc: "The Kerberos principal that the brokers run as.",
	},
	{
		Name: "sasl.kerberos.kinit.cmd", Type: String, Default: "/usr/bin/kinit", Mode: PerBroker,
		Support: Refused, Use: WithSASL, Reason: noSASL,
		Doc: "The path of Kerberos' kinit.",
	},
	{
		Name: "sasl.kerberos.ticket.renew.window.factor", Type: Double, Default: "0.8", Mode: PerBroker,
		Support: Refused, Use: WithSASL, Reason: noSASL,
		Doc: "After which part of its life a Kerberos ticket is renewed.",
	},
	{
		Name: "sasl.kerberos.ticket.renew.jitter", Type: Double, Default: "0.05", Mode: PerBroker,
		Support: Refused, Use: WithSASL, Reason: noSASL,
		Doc: "How much chance plays in when a Kerberos ticket is renewed.",
	},
	{
		Name: "sasl.kerberos.min.time.before.relogin", Type: Long, Default: "60000", Mode: PerBroker,
		Support: Refused, Use: WithSASL, Reason: noSASL,
		Doc: "The shortest time between two Kerberos logins.",
	},
	{
		Name: "sasl.kerberos.principal.to.local.rules", Type: List, Default: "DEFAULT", Mode: PerBroker,
		Support: Refused, Use: WithSASL, Reason: noSASL,
		Doc: "Rules that make a short name of a Kerberos principal.",
	},
	{
		Name: "sasl.oauthbearer.scope.claim.name", Type: String, Default: "scope",
		Support: Refused, Use: WithSASL, Reason: noSASL,
		Doc: "The claim of a token that holds its scope.",
	},
	{
		Name: "sasl.oauthbearer.sub.claim.name", Type: String, Default: "sub",
		Support: Refused, Use: WithSASL, Reason: noSASL,
		Doc: "The claim of a token that holds its subject.",
	},
	{
		Name: "sasl.oauthbearer.token.endpoint.url", Type: String, Default: Null,
		Support: Refused, Use: WithSASL, Reason: noSASL,
		Doc: "Where tokens are fetched.",
	},
	{
		Name: "sasl.oauthbearer.jwks.endpoint.url", Type: String, Default: Null,
		Support: Refused, Use: WithSASL, Reason: noSASL,
		Doc: "Where the keys that verify tokens are fetched.",
	},
	{
		Name: "sasl.oauthbearer.jwks.endpoint.refresh.ms", Type: Long, Default: "3600000",
		Support: Refused, Use: WithSASL, Reason: noSASL,
		Doc: "How often the keys that verify tokens are fetched anew.",
	},
	{
		Name: "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", Type: Long, Default: "100",
		Support: Refused, Use: WithSASL, Reason: noSASL,
		Doc: "The first pause between tries to fetch those keys.",
	},
	{
		Name: "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", Type: Long, Default: "10000",
		Support: Refused, Use: WithSASL, Reason: noSASL,
		Doc: "The longest pause between tries to fetch those keys.",
	},
	{
		Name: "sasl.oauthbearer.clock.skew.seconds", Type: Int, Default: "30",
		Support: Refused, Use: WithSASL, Reason: noSASL,
		Doc: "How far clocks may differ when a token's times are checked.",
	},
	{
		Name: "sasl.oauthbearer.expected.audience", Type: List,
		Support: Refused, Use: WithSASL, Reason: noSASL,
		Doc: "The audiences a token may be meant for.",
	},
	{
		Name: "sasl.oauthbearer.expected.issuer", Type: String, Default: Null,
		Support: Refused, Use: WithSASL, Reason: noSASL,
		Doc: "The issuer a token must come from.",
	},
	{
		Name: "sasl.oauthbearer.allow.unverified.audience", Type: Boolean, Default: "false",
		Support: Refused, Use: WithSASL, Reason: noSASL,
		Doc: "Whether tokens are taken without a check of their audience.",
	},
	{
		Name: "sasl.oauthbearer.allow.unverified.issuer", Type: Boolean, Default: "false",
		Support: Refused, Use: WithSASL, Reason: noSASL,
		Doc: "Whether tokens are taken without a check of their issuer.",
	},
	{
		Name: "sasl.oauthbearer.jwt.retriever.class", Type: Class, Default: "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever",
		Support: Refused, Use: WithSASL, Reason: noSASL,
		Doc: "A class that fetches tokens.",
	},
	{
		Name: "sasl.oauthbearer.jwt.validator.class", Type: Class, Default: "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator",
		Support: Refused, Use: WithSASL, Reason: noSASL,
		Doc: "A class that verifies tokens.",
	},
	{
		Name: "sasl.oauthbearer.scope", Type: String, Default: Null,
		Support: Refused, Use: WithSASL, Reason: noSASL,
		Doc: "The scope that is asked for when a token is fetched.",
	},
	{
		Name: "sasl.oauthbearer.client.credentials.client.id", Type: String, Default: Null,
		Support: Refused, Use: WithSASL, Reason: noSASL,
		Doc: "The client id tokens are fetched with.",
	},
	{
		Name: "sasl.oauthbearer.client.credentials.client.secret", Type: Password, Default: Null,
		Support: Refused, Use: WithSASL, Reason: noSASL,
		Doc: "The client secret tokens are fetched with.",
	},
	{
		Name: "sasl.oauthbearer.assertion.algorithm", Type: String, Default: "RS256", Allowed: oneOfFold("ES256", "RS256"),
		Support: Refused, Use: WithSASL, Reason: noSASL,
		Doc: "The algorithm that signs the assertion a token is fetched with.",
	},
	{
		Name: "sasl.oauthbearer.assertion.claim.aud", Type: String, Default: Null,
		Support: Refused, Use: WithSASL, Reason: noSASL,
		Doc: "The audience claim of the assertion.",
	},
	{
		Name: "sasl.oauthbearer.assertion.claim.exp.seconds", Type: Int, Default: "300", Allowed: between(0, 86400),
		Support: Refused, Use: WithSASL, Reason: noSASL,
		Doc: "How many seconds after now the assertion ends.",
	},
	{
		Name: "sasl.oauthbearer.assertion.claim.iss", Type: String, Default: Null,
		Support: Refused, Use: WithSASL, Reason: noSASL,
		Doc: "The issuer claim of the assertion.",
	},
	{
		Name: "sasl.oauthbearer.assertion.claim.jti.include", Type: Boolean, Default: "false",
		Support: Refused, Use: WithSASL, Reason: noSASL,
		Doc: "Whether each assertion gets an id of its own.",
	},
	{
		Name: "sasl.oauthbearer.assertion.claim.nbf.seconds", Type: Int, Default: "60", Allowed: between(0, 3600),
		Support: Refused, Use: WithSASL, Reason: noSASL,
		Doc: "How many seconds before now the assertion begins.",
	},
	{
		Name: "sasl.oauthbearer.assertion.claim.sub", Type: String, Default: Null,
		Support: Refused, Use: WithSASL, Reason: noSASL,
		Doc: "The subject claim of the assertion.",
	},
	{
		Name: "sasl.oauthbearer.assertion.file", Type: String, Default: Null,
		Support: Refused, Use: WithSASL, Reason: noSASL,
		Doc: "A file that holds a finished assertion.",
	},
	{
		Name: "sasl.oauthbearer.assertion.private.key.file", Type: String, Default: Null,
		Support: Refused, Use: WithSASL, Reason: noSASL,
		Doc: "The file of the key that signs the assertion.",
	},
	{
		Name: "sasl.oauthbearer.assertion.private.key.passphrase", Type: Password, Default: Null,
		Support: Refused, Use: WithSASL, Reason: noSASL,
		Doc: "The passphrase of the key that signs the assertion.",
	},
	{
		Name: "sasl.oauthbearer.assertion.template.file", Type: String, Default: Null,
		Support: Refused, Use: WithSASL, Reason: noSASL,
		Doc: "A file with the fixed headers and claims of the assertion.",
	},
	{
		Name: "ssl.protocol", Type: String, Default: "TLSv1.3", Mode: PerBroker,
		Support: Refused, Use: WithTLS, Reason: noTLS,
		Doc: "The TLS version contexts are made with.",
	},
	{
		Name: "ssl.provider", Type: String, Default: Null, Mode: PerBroker,
		Support: Refused, Use: WithTLS, Reason: noTLS,
		Doc: "The Java provider of TLS.",
	},
	{
		Name: "ssl.enabled.protocols", Type: List, Default: "TLSv1.2,TLSv1.3", Mode: PerBroker,
		Support: Refused, Use: WithTLS, Reason: noTLS,
		Doc: "The TLS versions a connection may use.",
	},
	{
		Name: "ssl.cipher.suites", Type: List, Mode: PerBroker,
		Support: Refused, Use: WithTLS, Reason: noTLS,
		Doc: "The cipher suites a connection may use; empty is the system's choice.",
	},
	{
		Name: "ssl.keystore.type", Type: String, Default: "JKS", Mode: PerBroker,
		Support: Refused, Use: WithTLS, Reason: noTLS,
		Doc: "The format of the key store: JKS, PKCS12 or PEM.",
	},
	{
		Name: "ssl.keystore.location", Type: String, Default: Null, Mode: PerBroker,
		Support: Refused, Use: WithTLS, Reason: noTLS,
		Doc: "The file of the key store.",
	},
	{
		Name: "ssl.keystore.password", Type: Password, Default: Null, Mode: PerBroker,
		Support: Refused, Use: WithTLS, Reason: noTLS,
		Doc: "The password of the key store.",
	},
	{
		Name: "ssl.keystore.key", Type: Password, Default: Null, Mode: PerBroker,
		Support: Refused, Use: WithTLS, Reason: noTLS,
		Doc: "The node's private key, in PEM.",
	},
	{
		Name: "ssl.keystore.certificate.chain", Type: Password, Default: Null, Mode: PerBroker,
		Support: Refused, Use: WithTLS, Reason: noTLS,
		Doc: "The node's certificates, in PEM.",
	},
	{
		Name: "ssl.key.password", Type: Password, Default: Null, Mode: PerBroker,
		Support: Refused, Use: WithTLS, Reason: noTLS,
		Doc: "The password of the private key.",
	},
	{
		Name: "ssl.truststore.type", Type: String, Default: "JKS", Mode: PerBroker,
		Support: Refused, Use: WithTLS, Reason: noTLS,
		Doc: "The format of the trust store: JKS, PKCS12 or PEM.",
	},
	{
		Name: "ssl.truststore.location", Type: String, Default: Null, Mode: PerBroker,
		Support: Refused, Use: WithTLS, Reason: noTLS,
		Doc: "The file of the trust store.",
	},
	{
		Name: "ssl.truststore.password", Type: Password, Default: Null, Mode: PerBroker,
		Support: Refused, Use: WithTLS, Reason: noTLS,
		Doc: "The password of the trust store.",
	},
	{
		Name: "ssl.truststore.certificates", Type: Password, Default: Null, Mode: PerBroker,
		Support: Refused, Use: WithTLS, Reason: noTLS,
		Doc: "The certificates that are trusted, in PEM.",
	},
	{
		Name: "ssl.keymanager.algorithm", Type: String, Default: "SunX509", Mode: PerBroker,
		Support: Refused, Use: WithTLS, Reason: noTLS,
		Doc: "The algorithm of Java's key manager.",
	},
	{
		Name: "ssl.trustmanager.algorithm", Type: String, Default: "PKIX", Mode: PerBroker,
		Support: Refused, Use: WithTLS, Reason: noTLS,
		Doc: "The algorithm of Java's trust manager.",
	},
	{
		Name: "ssl.endpoint.identification.algorithm", Type: String, Default: "https", Mode: PerBroker,
		Support: Refused, Use: WithTLS, Reason: noTLS,
		Doc: "How a server's name is checked against its certificate; empty does not check it.",
	},
	{
		Name: "ssl.secure.random.implementation", Type: String, Default: Null, Mode: PerBroker,
		Support: Refused, Use: WithTLS, Reason: noTLS,
		Doc: "The source of random numbers in Java.",
	},
	{
		Name: "ssl.client.auth", Type: String, Default: "none", Allowed: oneOf("required", "requested", "none"), Mode: PerBroker,
		Support: Refused, Use: WithTLS, Reason: noTLS,
		Doc: "Whether clients must, may or need not show a certificate.",
	},
	{
		Name: "ssl.engine.factory.class", Type: Class, Default: Null, Mode: PerBroker,
		Support: Refused, Use: WithTLS, Reason: noTLS,
		Doc: "A class that makes Java's TLS engines.",
	},
	{
		Name: "ssl.principal.mapping.rules", Type: String, Default: "DEFAULT",
		Support: Refused, Use: WithTLS, Reason: noTLS,
		Doc: "Rules that make a principal of a certificate's name.",
	},
	{
		Name: "ssl.allow.dn.changes", Type: Boolean, Default: "false",
		Support: Refused, Use: WithTLS, Reason: noTLS,
		Doc: "Whether a new key store may carry another name.",
	},
	{
		Name: "ssl.allow.san.changes", Type: Boolean, Default: "false",
		Support: Refused, Use: WithTLS, Reason: noTLS,
		Doc: "Whether a new key store may carry other host names.",
	},
}
