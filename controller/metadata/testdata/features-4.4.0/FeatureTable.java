// Prints what Kafka's classes MetadataVersion and Feature say. See README.md.

import org.apache.kafka.server.common.*;

public class FeatureTable {
    public static void main(String[] args) {
        for (MetadataVersion v : MetadataVersion.values()) {
            if (!v.isProduction()) continue;
            StringBuilder defaults = new StringBuilder();
            for (Feature f : Feature.PRODUCTION_FEATURES) defaults.append(" " + f.featureName() + "=" + f.defaultLevel(v));
            System.out.printf("metadata.version %d %s changed=%b broker=%d partition=%d change=%d fetch=%d offsets=%d bump=%b "
                + "scram=%b transactions=%b tokens=%b controllers=%b directories=%b elr=%b cordoned=%b cidr=%b unregister=%b%s%n",
                v.featureLevel(), v.version(), v.didMetadataChange(), v.registerBrokerRecordVersion(), v.partitionRecordVersion(),
                v.partitionChangeRecordVersion(), v.fetchRequestVersion(), v.listOffsetRequestVersion(), v.isLeaderEpochBumpRequiredOnIsrShrink(),
                v.isScramSupported(), v.isMetadataTransactionSupported(), v.isDelegationTokenSupported(), v.isControllerRegistrationSupported(),
                v.isDirectoryAssignmentSupported(), v.isElrSupported(), v.isCordonedLogDirsSupported(), v.isCidrAclSupported(),
                v.isControllerUnregistrationSupported(), defaults);
        }
        for (Feature f : Feature.PRODUCTION_FEATURES) {
            for (FeatureVersion level : f.featureVersions()) {
                if (level.featureLevel() > f.latestProduction()) continue;
                System.out.printf("%s %d bootstrap=%d needs=%d%n", f.featureName(), level.featureLevel(),
                    level.bootstrapMetadataVersion().featureLevel(), level.dependencies().getOrDefault("metadata.version", (short) 0));
            }
        }
    }
}
