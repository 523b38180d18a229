package org.apache.kafka.common.utils;

/** Kafka 4.4.0 has this class elsewhere; the file connectors of 4.3.1 ask for it here. */
public final class AppInfoParser {
    private AppInfoParser() { }

    public static String getVersion() {
        return org.apache.kafka.common.utils.internals.AppInfoParser.getVersion();
    }
}
