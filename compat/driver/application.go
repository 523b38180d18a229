package driver

import (
	"context"
	"path/filepath"

	"ottla/compat/harness"
)

// StartApplications starts a JVM that takes the commands of Java's driver and those of compat/java/applications besides: instances
// of Kafka Streams and a program of spring-kafka. Its standard error goes to a file in dir.
func StartApplications(dir string) (*Process, error) {
	return start("applications", dir, "java", "-Xmx768m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC",
		"-Dlog4j2.configurationFile="+filepath.Join(harness.CompatDir(), "java", "log4j2-tools.xml"),
		"-cp", harness.ApplicationsClassPath(), "Applications")
}

// Run runs one command of the program and decodes its result into result.
func (p *Process) Run(ctx context.Context, op string, args map[string]any, result any) error {
	return p.call(ctx, op, args, result, nil, nil)
}

// Kill ends the program like a crash, with SIGKILL.
func (p *Process) Kill() error {
	err := p.cmd.Process.Kill()
	_ = p.cmd.Wait() // its exit code says nothing
	return err
}
