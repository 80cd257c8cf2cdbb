// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"
)

func TestTheExitCodeOfAnError(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want int
	}{
		"none": {nil, 0},
		"one about the command line, however it is wrapped": {fmt.Errorf("server: %w", Errorf("--reason is required")), 2},
		"one that leaves the answer unknown":                {fmt.Errorf("status: %w", Unknown(errors.New("the API server is away"))), 2},
		"any other":                                         {errors.New("the API server is away"), 1},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ExitCode(c.err); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

func TestProblemsAreToldAtOnce(t *testing.T) {
	var p Problems
	if p.Err() != nil {
		t.Error("no problem is an error")
	}
	p.Add("workers", 0, "no server would be looked at", "write a number from 1")
	p.Add("kubeconfig", "k", Reading(&fs.PathError{Op: "open", Path: "k", Err: errors.New("no such file")}), "name one")
	const want = "these flags cannot be used, and nothing was started:\n" +
		"  --workers=0: no server would be looked at; write a number from 1\n  --kubeconfig=\"k\": no such file; name one"
	if err := p.Err(); err == nil || err.Error() != want || ExitCode(err) != ExitUsage {
		t.Errorf("got %v", err)
	}
}

func TestWhyAFileCannotBeReadIsOneLine(t *testing.T) {
	if got := Reading(errors.New("a\nb")); got != "a, b" {
		t.Errorf("got %q", got)
	}
}
