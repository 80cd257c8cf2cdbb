// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

const someOutput = `goos: linux
BenchmarkSelect/servers=100-2         	     100	    172089 ns/op	     84330 cpu-ns/op	    3936 B/op	      23 allocs/op
BenchmarkSelect/servers=1000-2        	     100	    600498 ns/op	    300 cpu-ns/op	    5348 B/op	      26 allocs/op
BenchmarkSelect/servers=1000-2        	     100	    600498 ns/op	    100 cpu-ns/op	    5348 B/op	      26 allocs/op
BenchmarkSelect/servers=1000-2        	     100	    600498 ns/op	    200 cpu-ns/op	    5348 B/op	      26 allocs/op
BenchmarkSelect/interpreted/servers=1000-2  100	    600498 ns/op	    7 cpu-ns/op
PASS
`

func TestAFigureIsTheMedianOfItsRuns(t *testing.T) {
	got, err := points(someOutput, "Select/servers=[0-9]+", "cpu-ns/op")
	if diff := cmp.Diff([]point{{100, 84330}, {1000, 200}}, got, cmp.AllowUnexported(point{})); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

func TestAFigureThatIsMissingIsAnError(t *testing.T) {
	for _, one := range [][2]string{{"Select/servers=[0-9]+", "MiB"}, {"Other/servers=[0-9]+", "ns/op"}} {
		if got, err := points(someOutput, one[0], one[1]); err == nil {
			t.Errorf("%s %s: %v", one[0], one[1], got)
		}
	}
}
