// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/metalaw/metalaw/cmd/internal/usage"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
)

func TestTheNameByWhichTheProgramIsCalled(t *testing.T) {
	for name, c := range map[string]struct {
		argv []string
		want Call
	}{
		"its own":                       {[]string{"/usr/bin/metalaw", "server"}, Call{Args: []string{"server"}}},
		"a plugin's":                    {[]string{"/usr/bin/kubectl-metalaw", "server"}, Call{Plugin: true, Args: []string{"server"}}},
		"a plugin's, on Windows":        {[]string{"kubectl-metalaw.exe", "server"}, Call{Plugin: true, Args: []string{"server"}}},
		"that of a plugin's completion": {[]string{"kubectl_complete-metalaw", "server", ""}, Call{Plugin: true, Args: []string{"__complete", "server", ""}}},
		"none":                          {nil, Call{}},
	} {
		t.Run(name, func(t *testing.T) {
			got := ReadCall(c.argv)
			if got.Plugin != c.want.Plugin || !slices.Equal(got.Args, c.want.Args) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// run executes a command line beside a stand-in for the manager.
func run(plugin bool, args ...string) (string, error) {
	manager := &cobra.Command{Use: "manager", Run: func(*cobra.Command, []string) {}}
	root := New(Call{Plugin: plugin, Args: args}, manager)
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&out)
	err := root.Execute()
	return out.String(), err
}

func TestAPluginCallsItselfAsKubectlDoesAndHidesTheManager(t *testing.T) {
	help, err := run(true, "--help")
	if err != nil || !strings.Contains(help, "kubectl metalaw [command]") || strings.Contains(help, "manager") {
		t.Errorf("error %v, help:\n%s", err, help)
	}
	help, err = run(true, "server", "retry", "--help")
	if err != nil || !strings.Contains(help, "kubectl metalaw server retry rack1-07-system-0") || strings.Contains(help, "\n  metalaw ") {
		t.Errorf("error %v, help:\n%s", err, help)
	}
}

func TestTheExitCodeOfACommandLine(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want int
	}{
		"a command of the program":    {[]string{"manager"}, usage.ExitDone},
		"help":                        {[]string{"server", "force", "--help"}, usage.ExitDone},
		"an unknown command":          {[]string{"explode"}, usage.ExitUsage},
		"an unknown verb":             {[]string{"server", "explode"}, usage.ExitUsage},
		"an unknown flag":             {[]string{"server", "retry", "--explode"}, usage.ExitUsage},
		"a flag without sense":        {[]string{"fleet", "status", "-o", "xml"}, usage.ExitUsage},
		"help for the cluster":        {[]string{"options"}, usage.ExitDone},
		"an unknown fleet":            {[]string{"status", "--kubeconfig", "/does/not/exist"}, usage.ExitUnknown},
		"a missing reason":            {[]string{"server", "retry", "a"}, usage.ExitUsage},
		"a word where none belongs":   {[]string{"fleet", "status", "now"}, usage.ExitUsage},
		"a cluster that is not there": {[]string{"fleet", "status", "--kubeconfig", "/does/not/exist"}, usage.ExitIncomplete},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := run(false, c.args...)
			if got := usage.ExitCode(err); got != c.want {
				t.Errorf("got %d (%v), want %d\n%s", got, err, c.want, out)
			}
		})
	}
}

func TestAMistypedCommandIsAnsweredWithWhatMayBeMeant(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"a command":                 {[]string{"fleat"}, `there is no command "fleat"; did you mean fleet? See --help`},
		"a verb":                    {[]string{"server", "rety"}, `there is no verb "rety"; did you mean retry? See metalaw server --help`},
		"a word below fleet":        {[]string{"fleet", "stats"}, `there is no command "stats"; did you mean status? See --help`},
		"nothing like it":           {[]string{"explode"}, `there is no command "explode"; see --help`},
		"a freeze without its flag": {[]string{"unfreeze", "inc-1204"}, "name a freeze with --name inc-1204; see --help"},
		"a word where none belongs": {[]string{"fleet", "status", "now"}, `metalaw fleet status takes no arguments, and "now" was given; see --help`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := run(false, c.args...)
			if !usage.Is(err) || err.Error() != c.want {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestTheReferenceHasEveryCommand(t *testing.T) {
	page, err := run(false, "reference")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"## metalaw server retry", "## metalaw server uncordon", "## metalaw freeze", "## metalaw unfreeze",
		"## metalaw fleet status", "## metalaw policy verify", "## metalaw policy rollback", "| `--override-safety` | true or false | `false` |", "| `--context` | text |"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
}

// leaves are the commands that do something, below one.
func leaves(cmd *cobra.Command) (all []*cobra.Command) {
	if !cmd.HasSubCommands() {
		return []*cobra.Command{cmd}
	}
	for _, below := range cmd.Commands() {
		if !below.Hidden && below.Name() != "help" && below.Name() != "completion" {
			all = append(all, leaves(below)...)
		}
	}
	return all
}

func TestEachCommandWritesADocumentWhereItIsAskedFor(t *testing.T) {
	for _, cmd := range leaves(New(Call{})) {
		if f := cmd.Flags().Lookup("output"); f == nil || f.Shorthand != "o" {
			t.Errorf("%s has no flag -o", cmd.CommandPath())
		}
	}
}

func TestAFileHasOneWord(t *testing.T) {
	for _, cmd := range leaves(New(Call{})) {
		if f := cmd.Flags().ShorthandLookup("f"); f != nil && f.Name != terminal.FileFlag {
			t.Errorf("%s calls a file --%s", cmd.CommandPath(), f.Name)
		}
	}
	root := New(Call{Args: []string{"bmc", "capture", "a", "--file", "x", "--help"}})
	if err := root.Execute(); err != nil {
		t.Errorf("the former word is refused: %v", err)
	}
}

func TestTheFlagsForTheClusterAreOutOfSight(t *testing.T) {
	for _, args := range [][]string{{"status"}, {"server", "retry"}, {"policy", "promote"}, {"doctor"}, {"explain", "claim"}} {
		help, err := run(false, append(args, "--help")...)
		if err != nil || strings.Contains(help, "--client-certificate") || !strings.Contains(help, `"metalaw options" shows the flags for the cluster`) {
			t.Errorf("%v: error %v, help:\n%s", args, err, help)
		}
		if !strings.Contains(help, "--output") {
			t.Errorf("%v: its own flags are missing:\n%s", args, help)
		}
	}
	all, err := run(false, "options")
	if err != nil || !strings.Contains(all, "--kubeconfig") || !strings.Contains(all, "--client-certificate") {
		t.Errorf("error %v, options:\n%s", err, all)
	}
	if help, err := run(false, "policy", "init", "--help"); err != nil || strings.Contains(help, "metalaw options") {
		t.Errorf("a command without a cluster: error %v, help:\n%s", err, help)
	}
	if help, err := run(true, "status", "--help"); err != nil || !strings.Contains(help, `"kubectl metalaw options"`) {
		t.Errorf("as a plugin: error %v, help:\n%s", err, help)
	}
}
