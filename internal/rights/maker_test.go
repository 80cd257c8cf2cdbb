// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
)

func TestAMakerComesBackAsItWasKept(t *testing.T) {
	user := authenticationv1.UserInfo{Username: "jane", UID: "7", Groups: []string{"ops", "dev"},
		Extra: map[string]authenticationv1.ExtraValue{"z": {"1"}, "a": {"2", "3"}}}
	text, err := MakerOf(user).Annotation()
	if err != nil || text != `{"username":"jane","uid":"7","groups":["ops","dev"],"extra":{"a":["2","3"],"z":["1"]}}` {
		t.Error(text, err)
	}
	got, err := ParseMaker(text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(MakerOf(user), got); diff != "" {
		t.Error(diff)
	}
}

func TestAMakerThatIsTooLargeIsRefusedAndNeverCut(t *testing.T) {
	for name, c := range map[string]struct {
		maker Maker
		want  string
	}{
		"64 groups are kept":     {Maker{Username: "jane", Groups: slices.Repeat([]string{"g"}, 64)}, ""},
		"65 groups are not":      {Maker{Username: "jane", Groups: slices.Repeat([]string{"g"}, 65)}, `user "jane" is in 65 groups, and at most 64 can be kept`},
		"nor is a long extra":    {Maker{Username: "jane", Extra: map[string][]string{"a": {strings.Repeat("x", 8192)}}}, `what authentication says of user "jane" takes 8230 bytes, and at most 8192 can be kept`},
		"nor is a user unnamed":  {Maker{}, "the maker has no username"},
		"a name is cut in words": {Maker{Username: strings.Repeat("x", 9000)}, `what authentication says of user "` + strings.Repeat("x", 64) + `" takes 9015 bytes, and at most 8192 can be kept`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := c.maker.Annotation()
			if got := said(err); got != c.want {
				t.Error(got)
			}
		})
	}
}

func said(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestParseMakerRefusesWhatIsNone(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":                      ``,
		"null":                         `null`,
		"no object":                    `"jane"`,
		"no username":                  `{"uid":"7"}`,
		"groups that are no list":      `{"username":"jane","groups":"ops"}`,
		"something behind it":          `{"username":"jane"} {}`,
		"more groups than are kept":    `{"username":"jane","groups":[` + strings.Repeat(`"g",`, 64) + `"g"]}`,
		"more bytes than are kept":     `{"username":"` + strings.Repeat("x", 8192) + `"}`,
		"a list nested without an end": strings.Repeat("[", 8000),
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := ParseMaker(text); err == nil {
				t.Errorf("%+v", got)
			}
		})
	}
}

// What is read can be kept again, so that no user has rights in one place and none in another.
func FuzzParseMaker(f *testing.F) {
	for _, seed := range []string{`{"username":"jane","uid":"7","groups":["ops"],"extra":{"a":["b"]}}`, `{}`, `null`, `{"username":"\ud800"}`,
		`{"username":"a","username":"b"}`, `{"USERNAME":"a"}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := ParseMaker(text)
		if err != nil {
			return
		}
		kept, err := m.Annotation()
		if err != nil {
			return // JSON may spell it longer
		}
		again, err := ParseMaker(kept)
		if err != nil {
			t.Fatal(err)
		}
		back, err := again.Annotation()
		if err != nil || back != kept {
			t.Errorf("%s became %s: %v", kept, back, err)
		}
	})
}
