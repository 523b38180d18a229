package config

// Why a key is refused. Each says what would go wrong if it were ignored.
const (
	noProviders    = "Ottla does not load configuration providers, so references in other values would be taken literally"
	noPolicies     = "Ottla cannot load Java policies, and without its policy everything would be allowed"
	noAuthorizer   = "Ottla does not check permissions yet, so everyone could do everything"
	noPrincipals   = "Ottla cannot load Java classes, and would give connections other principals than intended"
	noTLS          = "Ottla does not speak TLS yet, so traffic would not be encrypted"
	noSASL         = "Ottla does not speak SASL yet, so nobody would have to log in"
	noTokens       = "Ottla does not issue delegation tokens yet, so logins with them would fail"
	noRemote       = "Ottla does not move segments to remote storage yet, so they would fill the disk"
	noCordon       = "Ottla does not cordon directories yet, so new partitions would be placed there"
	noQuotaPlugins = "Ottla cannot load Java classes, and would not limit the clients this one limits"
)
