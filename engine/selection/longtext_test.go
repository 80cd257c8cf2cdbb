// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A server with a message that is too long is set aside by the interpreter, and so by the native evaluation, whichever
// text makes it so.
func TestALongTextInAMessageIsTheSameErrorNativelyAndInterpreted(t *testing.T) {
	tried := 0
	for _, part := range []string{"claim", "candidate"} {
		scope := reflect.TypeOf(map[string]any{"claim": Claim{}, "candidate": Candidate{}}[part])
		for i := range scope.NumField() {
			path := "input." + part + "." + scope.Field(i).Tag.Get("json")
			var claim Claim
			candidate := Candidate{Name: "a"}
			long := strings.Repeat("x", 1100)
			v := map[string]reflect.Value{"claim": reflect.ValueOf(&claim), "candidate": reflect.ValueOf(&candidate)}[part].Elem().Field(i)
			switch v.Interface().(type) {
			case string:
				v.SetString(long)
			case map[string]string:
				v.Set(reflect.ValueOf(map[string]string{"k": long}))
				path += ".k"
			default:
				continue
			}
			tried++
			t.Run(path, func(t *testing.T) {
				native := compiled(t, rego(fmt.Sprintf("allow := true\nreject contains {\"code\": \"a\", \"message\": sprintf(\"it is %%s\", [%s])} if true\n", path)))
				if !native.IsNative() {
					t.Fatal("the policy is not native")
				}
				candidates := []*PreparedCandidate{NewCandidate(candidate)}
				want, wantErr := native.Interpreted().Select(t.Context(), claim, candidates, Fleet{})
				got, gotErr := native.Select(t.Context(), claim, candidates, Fleet{})
				if diff := cmp.Diff(want, got, sameFailure); diff != "" || wantErr != nil || gotErr != nil || want.Unjudged.Count != 1 {
					t.Errorf("natively %v, interpreted %v\n%s", gotErr, wantErr, diff)
				}
			})
		}
	}
	if tried != 20 {
		t.Errorf("%d texts were tried", tried)
	}
}
