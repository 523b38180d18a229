package harness

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
)

// KafkaVersion is the version of Apache Kafka that install.sh brings and that the control column was made with.
const KafkaVersion = "4.4.0"

// Kind says which server a Node runs.
type Kind string

// The two kinds of server.
const (
	Ottla Kind = "ottla"
	Kafka Kind = "kafka"
)

// TargetKind is the kind of server under test: OTTLA_COMPAT_TARGET, by default ottla.
func TargetKind() (Kind, error) {
	switch k := Kind(os.Getenv("OTTLA_COMPAT_TARGET")); k {
	case "", Ottla:
		return Ottla, nil
	case Kafka:
		return Kafka, nil
	default:
		return "", fmt.Errorf("OTTLA_COMPAT_TARGET=%s: allowed are ottla and kafka", k)
	}
}

// Setting is a number from the environment, or what holds without one.
func Setting(name string, otherwise int) (int, error) {
	text := os.Getenv(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("%s is to be a number: %w", name, err)
	}
	return n, nil
}

// Root is the project's top folder: the nearest one above the working directory that holds go.mod.
var Root = sync.OnceValue(func() string {
	dir, err := os.Getwd()
	if err != nil {
		panic(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			panic("compat must run inside the project: no go.mod above the working directory")
		}
		dir = up
	}
})

// CompatDir is the suite's own folder.
func CompatDir() string { return filepath.Join(Root(), "compat") }

// Cache is the folder that install.sh fills: OTTLA_CACHE, by default ~/.cache/ottla.
func Cache() string {
	if dir := os.Getenv("OTTLA_CACHE"); dir != "" {
		return dir
	}
	return filepath.Join(os.Getenv("HOME"), ".cache", "ottla")
}

// KafkaClassPath is the class path with Apache Kafka's jars and the suite's own driver.
func KafkaClassPath() string {
	return KafkaJars(KafkaVersion) + string(os.PathListSeparator) + filepath.Join(Cache(), "driver")
}

// KafkaJars is the class path with the jars of a version of Apache Kafka; "" is KafkaVersion. install.sh brings 4.1.2 and 3.9.2 too.
func KafkaJars(version string) string {
	folder := "kafka-" + version
	if version == "" || version == KafkaVersion {
		folder = "kafka"
	}
	return filepath.Join(Cache(), folder, "*")
}

// Python is the interpreter of the venv with the Python clients.
func Python() string { return filepath.Join(Cache(), "venv", "bin", "python") }

// NodeModules is the folder of the Node.js clients.
func NodeModules() string { return filepath.Join(Cache(), "node", "node_modules") }

// NodeJS is the Node.js that is installed beside the clients.
func NodeJS() string { return filepath.Join(NodeModules(), ".bin", "node") }

// OttlaBinary is the server under test: OTTLA_COMPAT_BINARY, by default bin/ottla of the project.
func OttlaBinary() string {
	if path := os.Getenv("OTTLA_COMPAT_BINARY"); path != "" {
		return path
	}
	return filepath.Join(Root(), "bin", "ottla")
}

// CheckInstalled says what is missing for the named programs (java, kcat, python, node, ottla), all of it in one error, or nil.
// There is no way to go on without: a missing client is a failure, never a skipped test.
func CheckInstalled(programs ...string) error {
	var missing []error
	for _, p := range programs {
		var err error
		switch p {
		case "java":
			if _, err = exec.LookPath("java"); err == nil {
				_, err = os.Stat(filepath.Join(Cache(), "driver.stamp"))
			}
		case "kcat":
			_, err = exec.LookPath("kcat")
		case "python":
			_, err = os.Stat(Python())
		case "node":
			_, err = os.Stat(NodeJS())
		case "ottla":
			_, err = os.Stat(OttlaBinary())
		default:
			err = errors.New("unknown program")
		}
		if err != nil {
			missing = append(missing, fmt.Errorf("%s is missing: %w", p, err))
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("run `make build` and `compat/run.sh install` first: %w", errors.Join(missing...))
}

// Progress prints one line of progress, at once, also while `go test` holds back the output of tests.
func Progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "compat: "+format+"\n", args...)
}
