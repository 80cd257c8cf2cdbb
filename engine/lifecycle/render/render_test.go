// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/lifecycle"
)

var update = flag.Bool("update", false, "write the golden files anew")

const small = `
apiVersion: policy.metalaw.dev/v1alpha1
kind: Lifecycle
initial: Free
define:
  asked: claim.bound
  failed: bmc.failed
interrupts:
- {rule: Failed, to: Broken, when: failed, except: [Broken]}
states:
  Free:
    means: "Off & waiting <for a claim>."
    stable: true
    exits:
    - {rule: Asked, to: Running, when: asked}
  Running:
    means: It runs | a claim.
    exits:
    - {rule: Forgotten, to: Free, when: "!asked"}
    - {rule: Over, to: Free, after: 1h}
  Broken:
    means: Failed.
    stable: true
    exits:
    - {rule: Repaired, to: Free, when: "!failed"}
`

func machine(t *testing.T) *lifecycle.Lifecycle {
	t.Helper()
	words := engine.NewVocabulary(engine.Vocabulary{
		Facts: []engine.FactType{{Name: "claim.bound", Kind: engine.Bool}, {Name: "bmc.failed", Kind: engine.Bool},
			{Name: "lifecycle.state", Kind: engine.String}, {Name: "lifecycle.age", Kind: engine.Age}, {Name: "lifecycle.marks", Kind: engine.Set}},
	})
	l, found, err := lifecycle.Compile("lifecycle.yaml", []byte(small), words)
	if err != nil {
		t.Fatal(err)
	}
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	return l
}

func TestALifecycleIsDrawnInEveryForm(t *testing.T) {
	l := machine(t)
	counts := Counts{"Free": 3, "Running": 40}
	for name, got := range map[string]string{
		"server.mmd": Mermaid(l, nil), "server-live.mmd": Mermaid(l, counts),
		"server.dot": DOT(l, nil), "server-live.dot": DOT(l, counts),
		"server.md": Markdown(l, nil), "server-live.md": Markdown(l, counts),
		"server.svg": SVG(l, nil), "server-live.svg": SVG(l, counts),
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join("testdata", name)
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("it is not as in %s; look at it, and run this test with -update:\n%s", file, got)
			}
		})
	}
}

// Renderers of documents know plain properties, and draw what has a variable black.
func TestThePictureNeedsNoVariablesOfCSS(t *testing.T) {
	if picture := SVG(machine(t), nil); strings.Contains(picture, "var(") {
		t.Error("a colour is a variable")
	}
}

func TestWhatAnAuthorWritesIsNoMarkup(t *testing.T) {
	for name, c := range map[string]struct{ means, when, said, condition string }{
		"a script":                    {`Off <script>alert(1)</script>.`, `asked`, `Off &lt;script>alert(1)&lt;/script>.`, "`asked`"},
		"a comment":                   {`Off <!-- on`, `asked`, `Off &lt;!-- on`, "`asked`"},
		"a link and an image":         {`See [this](javascript:1) ![x](y).`, `asked`, `See &#91;this](javascript:1) !&#91;x](y).`, "`asked`"},
		"a link behind a backslash":   {`\[this](javascript:1)`, `asked`, `\&#91;this](javascript:1)`, "`asked`"},
		"a character reference":       {`Off &lt;b> &#60;`, `asked`, `Off &amp;lt;b> &amp;#60;`, "`asked`"},
		"ordinary text":               {"Off & under 5 < 6 > 4, R&D: `asked`.", `asked`, "Off & under 5 < 6 > 4, R&D: `asked`.", "`asked`"},
		"a condition of code":         {"Off.", `asked && lifecycle.age < 5m`, "Off.", "`asked && lifecycle.age < 5m`"},
		"a condition with a backtick": {"Off.", "lifecycle.state == \"`<script>`\"", "Off.", "`` lifecycle.state == \"`<script>`\" ``"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := prose(c.means); got != c.said {
				t.Errorf("%s", got)
			}
			if got := code(c.when); got != c.condition {
				t.Errorf("%s", got)
			}
		})
	}
}

func TestTheDrawingIsXML(t *testing.T) {
	d := xml.NewDecoder(strings.NewReader(SVG(machine(t), Counts{})))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func TestNoTwoArrowsShareALane(t *testing.T) {
	d := layOut(newGraph(machine(t), nil))
	for i, a := range d.lines {
		for _, b := range d.lines[:i] {
			if a.down == b.down && a.meets(b) {
				t.Errorf("%s and %s lie on each other", a.label(), b.label())
			}
		}
	}
}
