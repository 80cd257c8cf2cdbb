// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/metalaw/metalaw/test/env"
)

// noCluster is a kubeconfig of a cluster at which nobody answers: a command line that makes sense ends with 1 there.
const noCluster = `{apiVersion: v1, kind: Config, current-context: none, clusters: [{name: none, cluster: {server: "https://127.0.0.1:1"}}],
users: [{name: none, user: {}}], contexts: [{name: none, context: {cluster: none, user: none}}]}`

// shell calls the programs of this repository, and checks other commands without calling them.
type shell struct {
	t         *testing.T
	root, bin string
	// work is where programs are called: what they write stays out of the repository.
	work         string
	makefile     string
	kubeconfig   string
	calls, lines int
	answers      map[string]said
}

func TestTheCommandsThatTheDocsShow(t *testing.T) {
	root, err := env.RepoRoot()
	if err != nil {
		t.Fatal(err)
	}
	s := newShell(t, root)
	t.Run("all make sense", s.docsMakeSense)
	t.Run("one that makes none is noticed", s.nonsenseIsNoticed)
}

// docsMakeSense checks every command of every page.
func (s *shell) docsMakeSense(t *testing.T) {
	var pages []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(s.root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	for _, page := range pages {
		name, err := filepath.Rel(s.root, page)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range shown(string(text)) {
			s.lines++
			if wrong := s.check(c, string(text)); wrong != "" {
				t.Errorf("%s:%d: %s: %s", name, c.line, strings.Join(c.words, " "), wrong)
			}
		}
	}
	if s.calls < 50 || s.lines < 100 {
		t.Errorf("called %d of %d commands; the docs show more", s.calls, s.lines)
	}
}

// nonsenseIsNoticed checks pages with one command each.
func (s *shell) nonsenseIsNoticed(t *testing.T) {
	for name, c := range map[string]struct {
		page string
		want bool
	}{
		"a command":                         {"```sh\nmetalaw fleet status  # look\n```", false},
		"a flag that does not exist":        {"```sh\nmetalaw fleet status --explode\n```", true},
		"a flag's value that makes none":    {"```sh\nmetalaw freeze --reason r --level Some\n```", true},
		"a verb that does not exist":        {"```console\n$ metalaw server explode a --reason r\nexploded\n```", true},
		"a missing reason":                  {"```sh\nmetalaw server retry a\n```", true},
		"a flag on a second line":           {"```sh\nmetalaw freeze --reason r \\\n  --explode\n```", true},
		"one behind another":                {"```sh\nmake build && metalaw fleet explode\n```", true},
		"a verb in a text":                  {"Ask for `metalaw server retry`.", false},
		"one that does not exist, likewise": {"Ask for `metalaw server explode`.", true},
		"several, of which one is none":     {"Ask for `metalaw server retry|explode`.", true},
		"a flag that is none, likewise":     {"Ask for `metalaw server retry --explode`.", true},
		"a placeholder":                     {"Ask for `metalaw server VERB NAME --reason \"...\"`.", false},
		"the manager's flags":               {"```sh\nmetalaw manager --workers=many\n```", true},
		"the emulator's flags":              {"```sh\nredfish-emulator --machine 3\n```", true},
		"what is made":                      {"```sh\nmake N=3 load\n```", false},
		"what cannot be made":               {"```sh\nmake explosion\n```", true},
		"a variable that nothing reads":     {"```sh\nmake load EXPLODE=1\n```", true},
		"manifests":                         {"```sh\nkubectl apply -k config/default\n```", false},
		"manifests that are not there":      {"```sh\nkubectl apply --server-side -k config/explosion\n```", true},
		"a file that the page shows":        {"Call this `a.yaml`:\n```sh\nkubectl apply -f a.yaml\n```", false},
		"a file from nowhere":               {"```sh\nkubectl apply -f a.yaml\n```", true},
		"what a shell reads as a document":  {"```sh\nkubectl apply -f - <<'EOF'\nmetalaw explode\nEOF\n```", false},
	} {
		t.Run(name, func(t *testing.T) {
			all := shown(c.page)
			if len(all) == 0 {
				t.Fatal("no command is found")
			}
			wrong := ""
			for _, one := range all {
				wrong += s.check(one, c.page)
			}
			if (wrong != "") != c.want {
				t.Errorf("got %q", wrong)
			}
		})
	}
}

// newShell builds the programs.
func newShell(t *testing.T, root string) *shell {
	t.Helper()
	s := &shell{t: t, root: root, bin: t.TempDir(), work: t.TempDir(), answers: map[string]said{}}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", s.bin+"/", "./cmd/metalaw", "./test/redfish-emulator")
	build.Dir = root
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	text, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	s.makefile, s.kubeconfig = string(text), filepath.Join(s.bin, "kubeconfig")
	if err := os.WriteFile(s.kubeconfig, []byte(noCluster), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, output := s.run("metalaw", []string{"policy", "init", "fleet"}); code != 0 { // the bundle that the pages speak of
		t.Fatal(output)
	}
	return s
}

// check says what is wrong with a command; nothing where it makes sense, or is none that this repository has a say in.
func (s *shell) check(c command, page string) string {
	program, args := c.words[0], c.words[1:]
	if program == "kubectl" && len(args) > 0 && args[0] == "metalaw" {
		program, args = "metalaw", args[1:]
	}
	switch program {
	case "metalaw", "redfish-emulator":
		return s.call(program, args, c.whole)
	case "make":
		return s.make(args)
	case "kubectl":
		return s.kubectl(args, page)
	}
	return ""
}

// call runs a program. A command line that a text mentions in part, and one that would go on for ever, is only parsed.
func (s *shell) call(program string, args []string, whole bool) string {
	s.calls++
	serves := program == "redfish-emulator" || slices.Contains(args, "manager")
	if whole && !serves {
		code, output := s.run(program, args)
		if code == 2 && !strings.Contains(output, "cannot reach the API server") { // which it cannot, here
			return output
		}
		return ""
	}
	for _, path := range commandPaths(args) {
		rest := args[len(path):]
		if len(rest) > 0 && rest[0] == "VERB" {
			rest = nil // the flags are those of whatever stands there
		}
		code, output := s.run(program, slices.Concat(path, []string{"--help"}, rest))
		usage := strings.Join(append([]string{program}, path...), " ")
		switch {
		case strings.Contains(output, "flag needs an argument"): // a text names a flag, and no value for it
		case code != 0:
			return output
		case len(path) > 0 && !regexp.MustCompile(`(?m)^  `+regexp.QuoteMeta(usage)+`( |$)`).MatchString(output):
			return "there is no command " + usage
		}
	}
	return ""
}

// commandPaths are the words that name a command, once for each of several words between bars.
func commandPaths(args []string) [][]string {
	paths := [][]string{nil}
	for _, word := range args {
		if !regexp.MustCompile(`^[a-z][a-z|-]*$`).MatchString(word) || len(paths[0]) == 2 {
			break
		}
		var longer [][]string
		for _, path := range paths {
			for one := range strings.SplitSeq(word, "|") {
				longer = append(longer, append(slices.Clone(path), one))
			}
		}
		paths = longer
	}
	return paths
}

// run calls a program; what was called before is answered from memory.
func (s *shell) run(program string, args []string) (code int, output string) {
	key := program + "\x00" + strings.Join(args, "\x00")
	if known, ok := s.answers[key]; ok {
		return known.code, known.out
	}
	defer func() { s.answers[key] = said{code: code, out: output} }()
	var out bytes.Buffer
	cmd := exec.CommandContext(s.t.Context(), filepath.Join(s.bin, program), args...)
	cmd.Env = []string{"KUBECONFIG=" + s.kubeconfig, "HOME=" + s.bin}
	cmd.Stdout, cmd.Stderr, cmd.Dir = &out, &out, s.work
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), strings.TrimSpace(out.String())
}

// make looks for targets and variables in the Makefile.
func (s *shell) make(args []string) string {
	for _, word := range args {
		variable, _, is := strings.Cut(word, "=")
		switch {
		case strings.HasPrefix(word, "-"):
		case is && !strings.Contains(s.makefile, "$("+variable+")"):
			return "the Makefile reads no variable " + variable
		case !is && !regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(word)+`:`).MatchString(s.makefile):
			return "the Makefile has no target " + word
		}
	}
	return ""
}

// kubectl looks for the files that are applied: in the repository, or earlier on the page.
func (s *shell) kubectl(args []string, page string) string {
	for i, word := range args {
		if word != "-k" && word != "-f" || i+1 == len(args) || !slices.Contains(args, "apply") {
			continue
		}
		file := args[i+1]
		if file == "-" || file == "." || strings.Contains(file, "://") {
			continue
		}
		if _, err := os.Stat(filepath.Join(s.root, file)); err != nil && strings.Count(page, filepath.Base(file)) < 2 {
			return "there is no " + file
		}
	}
	return ""
}
