// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalaw/metalaw/cmd/internal/usage"
)

// validateLine is what the manager says of a command line before it starts anything.
func validateLine(t *testing.T, args ...string) error {
	t.Helper()
	t.Setenv("POD_NAMESPACE", "")
	o := &options{}
	cmd := newManagerCommand()
	cmd.ResetFlags()
	o.register(cmd.Flags())
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	return o.validate()
}

func TestAFlagThatCannotBeUsedIsToldWithValueCauseAndRemedy(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const (
		url     = "write the URL that the agents on the servers dial, such as https://metalaw-registry.example:10000"
		address = "write host:port or :port, such as :10000"
	)
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"a sink that is no URL": {[]string{"--sanitization-sink=/var/records"}, `--sanitization-sink="/var/records": the sink has scheme ""; ` +
			"write file:///directory or s3://bucket/prefix?endpoint=https://host; write such a URL, or leave the flag out to keep records in the cluster alone"},
		"no registry":                        {[]string{"--registry-url="}, `--registry-url="": it is required; ` + url},
		"a registry that is no URL":          {[]string{"--registry-url=nonsense"}, `--registry-url="nonsense": agents speak http and https alone; ` + url},
		"a registry of another scheme":       {[]string{"--registry-url=ftp://x"}, `--registry-url="ftp://x": agents speak http and https alone; ` + url},
		"a registry without a host":          {[]string{"--registry-url=https://:1"}, `--registry-url="https://:1": it names no host and port that an agent could dial; ` + url},
		"a registry at no port":              {[]string{"--registry-url=https://x:99999"}, `--registry-url="https://x:99999": it names no host and port that an agent could dial; ` + url},
		"a registry with a query":            {[]string{"--registry-url=https://x?a=b"}, `--registry-url="https://x?a=b": it may hold a scheme, a host, a port and a path, and nothing else; ` + url},
		"a registry with a password":         {[]string{"--registry-url=https://a:b@x"}, `--registry-url="https://a:xxxxx@x": it may hold a scheme, a host, a port and a path, and nothing else; ` + url},
		"http to a registry that speaks TLS": {[]string{"--registry-url=http://x"}, `--registry-url="http://x": the registry speaks TLS, and agents told http would send their tokens in the clear; write https, or add --registry-plaintext on a closed network`},
		"no workers":                         {[]string{"--workers=0"}, "--workers=0: no server would be looked at; write a number from 1, such as 16"},
		"an adoption rate of nothing":        {[]string{"--adoption-rate=0"}, "--adoption-rate=0: no server would ever come under another policy; write a number from 1, such as 10"},
		"fewer workers than none":            {[]string{"--workers=-3"}, "--workers=-3: no server would be looked at; write a number from 1, such as 16"},
		"a collector that never rests":       {[]string{"--gc-percent=0"}, "--gc-percent=0: the manager would do little else than collect; write a number from 10, such as 50"},
		"grants maintenances somehow":        {[]string{"--maintenance=maybe"}, "--maintenance=maybe: there is no such mode; write off, plan or on"},
		"polls without a pause":              {[]string{"--steady-poll=0s"}, "--steady-poll=0s: BMCs cannot be read so often; write a duration of at least 1s, such as 3m"},
		"polls back in time":                 {[]string{"--steady-poll=-5m"}, "--steady-poll=-5m0s: BMCs cannot be read so often; write a duration of at least 1s, such as 3m"},
		"no grace":                           {[]string{"--power-grace=0s"}, "--power-grace=0s: a BMC needs time to show what it accepted; write a duration above 0, such as 1m"},
		"no probe image":                     {[]string{"--probe-image="}, `--probe-image="": it is required; write an image, such as ghcr.io/metalaw/metalprobe:latest`},
		"a wipe image with a scheme":         {[]string{"--wipe-image=docker://x"}, `--wipe-image="docker://x": an image's name has no scheme; write an image, or nothing to use --probe-image`},
		"an unknown boot source":             {[]string{"--boot-target=Floppy"}, `--boot-target="Floppy": there is no such boot source; write Pxe or UefiHttp`},
		"a namespace with capitals":          {[]string{"--namespace=Metal"}, `--namespace="Metal": no object can have this name; write the namespace that the manager runs in, such as metalaw-system`},
		"an outside name with a port":        {[]string{"--extra-dns-names=a.example,b.example:1"}, `--extra-dns-names="b.example:1": this is no host name; write names without scheme and port, such as metalaw-registry.example`},
		"an unknown level":                   {[]string{"--log-level=loud"}, `--log-level="loud": there is no such level; write debug, info or error`},
		"metrics at a bare port":             {[]string{"--metrics-bind-address=8443"}, `--metrics-bind-address="8443": this is no address to listen on; ` + address + ", or 0 to serve none"},
		"health at no port":                  {[]string{"--health-probe-bind-address=:http"}, `--health-probe-bind-address=":http": its port is no number from 0 to 65535; ` + address + ", or 0 to serve none"},
		"profiles for everybody":             {[]string{"--pprof-bind-address=:6060"}, `--pprof-bind-address=":6060": profiles are served to every program that can connect; write localhost:PORT, and reach it with kubectl port-forward`},
		"profiles at a bare port":            {[]string{"--pprof-bind-address=6060"}, `--pprof-bind-address="6060": this is no address to listen on; write localhost:port, such as localhost:6060, or 0 to serve none`},
		"profiles for everybody at no port":  {[]string{"--pprof-bind-address=:http"}, `--pprof-bind-address=":http": profiles are served to every program that can connect; write localhost:PORT, and reach it with kubectl port-forward`},
		"a registry at no host":              {[]string{"--registry-bind-address=a b:1"}, `--registry-bind-address="a b:1": its host is neither an address nor a host name; ` + address},
		"webhooks at no port":                {[]string{"--webhook-port=70000"}, "--webhook-port=70000: this is no port; write a number from 1 to 65535, such as 9443"},
		"certificates nowhere":               {[]string{"--webhook-cert-dir="}, `--webhook-cert-dir="": the certificates have to be somewhere; name the directory of tls.crt, tls.key and ca.crt, such as /certs`},
		"a kubeconfig that is not there":     {[]string{"--kubeconfig=/nonexistent/k"}, `--kubeconfig="/nonexistent/k": no such file or directory; name a kubeconfig that the manager may read`},
		"an authority without a certificate": {[]string{"--bmc-ca-file=" + empty}, `--bmc-ca-file="` + empty + `": it holds no certificate; name a PEM file with the certificates that BMCs are trusted by`},
	} {
		t.Run(name, func(t *testing.T) {
			err := validateLine(t, append([]string{"--registry-url=https://registry.example:10000"}, c.args...)...)
			if err == nil {
				t.Fatal("it is accepted")
			}
			const head = "these flags cannot be used, and nothing was started:\n  "
			if diff := cmp.Diff(head+c.want, err.Error()); diff != "" {
				t.Errorf("- want, + got:\n%s", diff)
			}
			if usage.ExitCode(err) != 2 {
				t.Errorf("exit code %d", usage.ExitCode(err))
			}
		})
	}
}

func TestAllFlagsThatCannotBeUsedAreToldAtOnce(t *testing.T) {
	err := validateLine(t, "--workers=0", "--steady-poll=0s", "--probe-image=")
	if err == nil {
		t.Fatal("they are accepted")
	}
	for _, want := range []string{"--registry-url=", "--workers=", "--steady-poll=", "--probe-image="} {
		if !strings.Contains(err.Error(), "\n  "+want) {
			t.Errorf("%s is missing:\n%v", want, err)
		}
	}
}

func TestFlagsThatCanBeUsedAreAccepted(t *testing.T) {
	for name, args := range map[string][]string{
		"the shipped manifests":        {"--registry-url=https://metalaw-registry.metalaw-system.svc:10000", "--leader-elect"},
		"plain http on a closed net":   {"--registry-url=http://10.0.0.1:10000", "--registry-plaintext"},
		"an IPv6 registry":             {"--registry-url=https://[2001:db8::1]:10000"},
		"a registry under a path":      {"--registry-url=https://lb.example/metalaw"},
		"TLS ended before the manager": {"--registry-url=https://lb.example", "--registry-plaintext"},
		"profiles on the host alone":   {"--registry-url=https://a", "--pprof-bind-address=[::1]:6060"},
		"no metrics and no health":     {"--registry-url=https://a", "--metrics-bind-address=0", "--health-probe-bind-address=0"},
		"webhooks left out":            {"--registry-url=https://a", "--webhooks=false", "--webhook-port=0"},
		"a wildcard certificate":       {"--registry-url=https://a", "--extra-dns-names=*.example,localhost"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := validateLine(t, args...); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestWithoutAClusterTheManagerSaysSoInOneSentence(t *testing.T) {
	for _, variable := range []string{"KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"} {
		t.Setenv(variable, "")
	}
	t.Setenv("HOME", t.TempDir())
	var out bytes.Buffer
	cmd := newManagerCommand()
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs([]string{"--registry-url=https://a"})
	err := cmd.ExecuteContext(t.Context())
	const want = "which cluster? There is no kubeconfig, and this is no pod with a service account: name a kubeconfig with --kubeconfig or $KUBECONFIG"
	if err == nil || err.Error() != want || out.Len() > 0 || usage.ExitCode(err) != 1 {
		t.Errorf("got %v\n%s", err, out.String())
	}
}
