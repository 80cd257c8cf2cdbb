// SPDX-License-Identifier: Apache-2.0

package regosandbox

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestThePartAsksOnlyTheRulesThatDoNotReadWhatIsUnread(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		want []string
	}{
		"a rule stays, and one goes": {`
why contains {"code": "open", "message": "m"} if input.open
why contains {"code": "name", "message": "m"} if input.name == ""
ok := true
`, []string{"open"}},
		"all go, and another rule asks for them": {`
why contains {"code": "name", "message": "m"} if input.name == ""
ok if count(why) == 0
`, nil},
		"all go, and another rule looks into them": {`
why contains {"code": "name", "message": "m"} if input.name == ""
ok if {
	some one in why
	one.code == "name"
}
`, nil},
		"one without a body goes": {`
why contains {"code": "name", "message": input.name}
ok := true
`, nil},
		"another rule on the same line stays": {`
why contains {"code": "name", "message": "m"} if { input.name == "" } known := true
why contains {"code": "open", "message": "m"} if known
ok := true
`, []string{"open"}},
		"of two on the same line one goes": {`
why contains {"code": "open", "message": "m"} if { input.open } why contains {"code": "name", "message": "m"} if input.name == ""
ok := true
`, []string{"open"}},
		"of two bodies one goes": {`
why contains {"code": "open", "message": m} if { m := "m"; input.open } { m := "n"; input.name == "" }
ok := true
`, []string{"open"}},
		"nothing goes, and an entry point that is not asked fails": {`
why contains {"code": "open", "message": "m"} if input.open
ok if to_number(input.name) > 1
`, []string{"open"}},
		"an entry point that is not asked fails, and uses what goes": {`
why contains {"code": "open", "message": "m"} if input.open
why contains {"code": "number", "message": "m"} if number > 1
number := to_number(input.name)
ok if number > 1
`, []string{"open"}},
		"there is none": {"ok := true\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			files := policy(c.body)
			module, found := Compile(testSpec(), files)
			if module == nil {
				t.Fatal(found.Err())
			}
			part, _, err := module.Part(files, "why", "name")
			if err != nil {
				t.Fatal(err)
			}
			evaluation, err := part.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer evaluation.Close()
			values, err := evaluation.Eval(Value(input{Open: true}))
			if err != nil || len(values) != 1 {
				t.Fatal(values, err)
			}
			messages, err := part.Messages("why", values[0])
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, m := range messages {
				got = append(got, m.Code)
			}
			slices.Sort(got)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
