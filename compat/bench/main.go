package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"time"

	"ottla/compat/harness"
)

// settings are the command line.
type settings struct {
	quick   bool
	rounds  int
	only    *regexp.Regexp
	targets []harness.Kind
	out     string
	dir     string
	profile string
}

func parse() (settings, error) {
	var s settings
	only := flag.String("only", "", "run the lines whose name matches this regular expression")
	targets := flag.String("targets", "ottla,kafka", "which servers to measure")
	flag.BoolVar(&s.quick, "quick", false, "fewer and shorter rounds: under eight minutes in all")
	flag.IntVar(&s.rounds, "rounds", 0, "rounds a line; by default 5, with -quick 3")
	flag.StringVar(&s.out, "out", "", "folder for the report; none by default")
	flag.StringVar(&s.dir, "dir", "", "folder for the servers' data; by default a temporary one, removed at the end")
	flag.StringVar(&s.profile, "pprof", "", "loopback host:port on which Ottla serves profiles meanwhile, to look at it under load")
	flag.Parse()
	var err error
	if s.only, err = regexp.Compile(*only); err != nil {
		return s, err
	}
	for name := range strings.SplitSeq(*targets, ",") {
		s.targets = append(s.targets, harness.Kind(name))
	}
	if s.rounds == 0 {
		s.rounds = 5
		if s.quick {
			s.rounds = 3
		}
	}
	return s, nil
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run() error {
	s, err := parse()
	if err != nil {
		return err
	}
	if err := harness.CheckInstalled("java", "kcat", "ottla"); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if s.dir == "" {
		if s.dir, err = os.MkdirTemp("", "ottla-bench-"); err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(s.dir) }()
	}
	begin := time.Now()
	b := &bench{settings: s}
	failed := b.all(ctx)
	report := heading(begin) + b.report()
	fmt.Print("\n" + report)
	if failed == nil && s.out != "" {
		failed = b.write(report, begin)
	}
	return failed
}

// heading says what was measured, when, and on what.
func heading(begin time.Time) string {
	version := "unknown"
	if out, err := exec.Command(harness.OttlaBinary(), "version").Output(); err == nil {
		version = strings.TrimSpace(string(out))
	}
	kernel := "unknown kernel"
	if text, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		kernel = "Linux " + strings.TrimSpace(string(text))
	}
	return fmt.Sprintf("%s\nbeside Apache Kafka %s, -Xmx1G\n%s, %d processors, %s, took %s\ncommand: go run ./compat/bench %s\n\n",
		version, harness.KafkaVersion, begin.Format("2006-01-02 15:04"), runtime.NumCPU(), kernel,
		time.Since(begin).Round(time.Second), strings.Join(os.Args[1:], " "))
}

func (b *bench) write(report string, begin time.Time) error {
	if err := os.MkdirAll(b.out, 0o755); err != nil {
		return err
	}
	path := filepath.Join(b.out, begin.Format("2006-01-02")+".txt")
	if err := os.WriteFile(path, []byte(report), 0o644); err != nil {
		return err
	}
	harness.Progress("written to %s", path)
	return nil
}
