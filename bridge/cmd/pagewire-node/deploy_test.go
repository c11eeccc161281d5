package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/pagewire/pagewire/bridge/node/process"
	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
)

// The files for deployment name existing options, use the ports that they declare, and give a node
// enough time to end.
func TestDeploymentFiles(t *testing.T) {
	cmd := command(new(process.Options), os.LookupEnv)
	for name, wants := range map[string][]string{
		"pagewire-node.service": {"ExecStart=" + installed + " ", "TimeoutStopSec=30s", "DynamicUser=yes",
			"LoadCredential="},
		"Containerfile": {`ENTRYPOINT ["/pagewire-node"]`, "./bridge/cmd/pagewire-node",
			"EXPOSE 8443 9090 7434"},
		"kubernetes.yaml": {
			"containerPort: 8443", "--listen=0.0.0.0:8443", "containerPort: 9090", "--admin=0.0.0.0:9090",
			"containerPort: 7434", "--cluster=0.0.0.0:7434", "terminationGracePeriodSeconds: 30", "path: /readyz",
			"--drain-delay=5s", "--node-url=https://", "kind: NetworkPolicy", "kind: PodDisruptionBudget",
			"path: /healthz", "runAsNonRoot: true", "fsGroup: 65532", "defaultMode: 0440",
		},
	} {
		text, err := os.ReadFile(filepath.Join("../../../demo/fleet/deploy", name))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range wants {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s lacks %q", name, want)
			}
		}
		if strings.Contains(string(text), "\t") {
			t.Errorf("%s has tabs", name)
		}
		options := 0
		for _, of := range regexp.MustCompile(`[ "]--([a-z-]+)`).FindAllStringSubmatch(string(text), -1) {
			if of[1] == "from" { // a container file's own
				continue
			}
			if options++; cmd.Flags().Lookup(of[1]) == nil {
				t.Errorf("%s names --%s, which is no option", name, of[1])
			}
		}
		if options == 0 {
			t.Errorf("%s names no option: the test sees nothing", name)
		}
	}
	if process.DefaultDrainDelay+process.DefaultDrain+process.EndTimeout > 30*time.Second {
		t.Error("a node's end takes longer than what runs it waits")
	}
}

// installed is the path of the program in the unit.
const installed = "/usr/local/bin/pagewire-node"

// systemd-analyze finds no fault in the unit.
func TestUnit(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("systemd is Linux's")
	}
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		if out, err := testcmd.Command("../../../.ci/debian", "systemd").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	text, err := os.ReadFile("../../../demo/fleet/deploy/pagewire-node.service")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.Executable() // systemd checks that the program exists
	if err != nil {
		t.Fatal(err)
	}
	unit := filepath.Join(t.TempDir(), "pagewire-node.service")
	if err := os.WriteFile(unit, []byte(strings.ReplaceAll(string(text), installed, program)), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := testcmd.Command("systemd-analyze", "verify", "--recursive-errors=no", unit).CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}
