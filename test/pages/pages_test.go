// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

const page = "# Title\n\n```sh\nfirst NAME  # a remark\nsecond\n```\n\n## Part\n\n```console\n$ shown\n```\n\n* item\n\n  ```bash\n" +
	"  # not a heading\n  third\n  ```\n\n```yaml\na: 1\n```\n\n```\nplain\n```\n"

func TestTheBlocksOfAPage(t *testing.T) {
	want := []Block{{4, "Title", []string{"first NAME  # a remark", "second"}}, {17, "Part", []string{"  # not a heading", "  third"}}}
	if diff := cmp.Diff(want, Blocks(page)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got := want[0].First(); got != "first NAME" {
		t.Errorf("the first line is %q", got)
	}
}

func TestTheScriptOfABlock(t *testing.T) {
	b := Blocks(page)[0]
	for name, c := range map[string]struct {
		left, fails, names map[string]string
		want               string
	}{
		"as it stands":            {nil, nil, nil, "first NAME  # a remark\nsecond\n"},
		"without a line":          {map[string]string{"second": "it cannot"}, nil, nil, "first NAME  # a remark\n"},
		"with a name":             {nil, nil, map[string]string{"NAME": "a"}, "first a  # a remark\nsecond\n"},
		"with an exit code of 1":  {nil, map[string]string{"first NAME": "1 is an answer"}, nil, "first NAME || [ $? -eq 1 ]\nsecond\n"},
		"with a part of one line": {map[string]string{"sec": "no"}, nil, nil, "first NAME  # a remark\nsecond\n"},
	} {
		if got := b.Script(c.left, c.fails, c.names); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestALineThatThePageLostIsNoticed(t *testing.T) {
	got := Missing(Blocks(page), map[string]string{"second": "", "fourth": ""}, map[string]string{"third": "", "shown": ""})
	if diff := cmp.Diff([]string{`no block has the line "fourth"`, `no block has the line "shown"`}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
