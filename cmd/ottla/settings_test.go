package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ottla/controller/config"
)

func find(all []config.Property, name string) config.Property {
	for _, property := range all {
		if property.Name == name {
			return property
		}
	}
	return config.Property{}
}

func TestLoadSettingsLayers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "server.properties")
	text := "# a file\nnode.id=7\nNode.Id=8\nlog.dirs=/a\\\n  ,/b\nnum.partitions=1\nmessage.max.bytes=1\n" +
		"listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config=x required a=\"b\";\nempty=\nnum.partitions=2\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	environ := []string{"OTTLA_NUM_PARTITIONS=3", "OTTLA_MESSAGE_MAX_BYTES=2", "OTTLA_A___B__C=d", "NUM_IO_THREADS=9", "OTTLA_EMPTY2="}
	got, err := loadSettings(path, []string{"num.partitions=4", "log.segment.bytes=a=b"}, environ)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []config.Property{
		{Name: "node.id", Value: "7", Origin: config.FromFile, Where: path + " line 2"},
		{Name: "Node.Id", Value: "8", Origin: config.FromFile, Where: path + " line 3"},
		{Name: "log.dirs", Value: "/a,/b", Origin: config.FromFile, Where: path + " line 4"},
		{Name: "num.partitions", Value: "4", Origin: config.FromOverride, Where: "--override"},
		{Name: "message.max.bytes", Value: "2", Origin: config.FromEnv, Where: "OTTLA_MESSAGE_MAX_BYTES"},
		{Name: "a-b_c", Value: "d", Origin: config.FromEnv, Where: "OTTLA_A___B__C"},
		{Name: "empty2", Origin: config.FromEnv, Where: "OTTLA_EMPTY2"},
		{Name: "empty", Origin: config.FromFile, Where: path + " line 9"},
		{Name: "log.segment.bytes", Value: "a=b", Origin: config.FromOverride, Where: "--override"},
		{Name: "listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config", Value: `x required a="b";`, Origin: config.FromFile, Where: path + " line 8"},
	} {
		if property := find(got, want.Name); property != want {
			t.Errorf("%s is %+v, want %+v", want.Name, property, want)
		}
	}
	if len(got) != 10 {
		t.Errorf("%d properties: %+v", len(got), got)
	}
}

func TestLoadSettingsWithoutFile(t *testing.T) {
	got, err := loadSettings("", []string{"log.dirs=/x"}, []string{"OTTLA_NODE_ID=5"})
	if err != nil {
		t.Fatal(err)
	}
	broker, report, err := config.Broker(got)
	if err != nil {
		t.Fatal(err)
	}
	if broker.NodeID != 5 || broker.LogDirs[0] != "/x" || len(report.Unknown)+len(report.Ignored) > 0 {
		t.Errorf("the node is %d in %v, and reports %+v", broker.NodeID, broker.LogDirs, report)
	}
}

func TestLoadSettingsFaults(t *testing.T) {
	if _, err := loadSettings("/does/not/exist", nil, nil); err == nil || !strings.Contains(err.Error(), "/does/not/exist") {
		t.Errorf("the error is %v", err)
	}
	if _, err := loadSettings("", []string{"novalue"}, nil); err == nil || !strings.Contains(err.Error(), "novalue") {
		t.Errorf("the error is %v", err)
	}
	path := filepath.Join(t.TempDir(), "bad.properties")
	if err := os.WriteFile(path, []byte("a=\\u12"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := loadSettings(path, nil, nil); err == nil || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("the error is %v", err)
	}
}
