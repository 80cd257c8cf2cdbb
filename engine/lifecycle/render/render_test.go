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
initial: Unlit
define:
  asked: lamp.asked
  burnt: lamp.burnt
interrupts:
- {rule: Fuse, to: Dark, when: burnt, except: [Dark]}
states:
  Unlit:
    means: "Off & waiting <for a hand>."
    stable: true
    exits:
    - {rule: Asked, to: Lit, when: asked}
  Lit:
    means: It shines | brightly.
    exits:
    - {rule: Forgotten, to: Unlit, when: "!asked"}
    - {rule: Spent, to: Unlit, after: 1h}
  Dark:
    means: Burnt.
    stable: true
    exits:
    - {rule: Mended, to: Unlit, when: "!burnt"}
`

func lamp(t *testing.T) *lifecycle.Lifecycle {
	t.Helper()
	words := engine.NewVocabulary(engine.Vocabulary{
		Facts: []engine.FactType{{Name: "lamp.asked", Kind: engine.Bool}, {Name: "lamp.burnt", Kind: engine.Bool},
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
	l := lamp(t)
	counts := Counts{"Unlit": 3, "Lit": 40}
	for name, got := range map[string]string{
		"lamp.mmd": Mermaid(l, nil), "lamp-live.mmd": Mermaid(l, counts),
		"lamp.dot": DOT(l, nil), "lamp-live.dot": DOT(l, counts),
		"lamp.md": Markdown(l, nil), "lamp-live.md": Markdown(l, counts),
		"lamp.svg": SVG(l, nil), "lamp-live.svg": SVG(l, counts),
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
	d := xml.NewDecoder(strings.NewReader(SVG(lamp(t), Counts{})))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func TestNoTwoArrowsShareALane(t *testing.T) {
	d := layOut(newGraph(lamp(t), nil))
	for i, a := range d.lines {
		for _, b := range d.lines[:i] {
			if a.down == b.down && a.meets(b) {
				t.Errorf("%s and %s lie on each other", a.label(), b.label())
			}
		}
	}
}
