// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"
	"testing"
)

func TestCPUTimeOfAProcess(t *testing.T) {
	const fields = " S 1 7 7 0 -1 4194304 100 0 0 0 250 50 9 9 20 0 8 0 100 1000 200"
	for name, c := range map[string]struct {
		text, wrong string
		want        float64
	}{
		"user and system time together":        {"7 (manager)" + fields, "", 3},
		"of a program with an odd name":        {"7 (a) S (b)" + fields, "", 3},
		"not without a name":                   {"7 manager" + fields, "names no program", 0},
		"not from a line that is broken off":   {"7 (manager) S 1 7", "too few fields", 0},
		"not where the fields are not numbers": {"7 (m) " + strings.Repeat("x ", 20), "invalid syntax", 0},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseStat(c.text)
			if got != c.want || (err == nil) != (c.wrong == "") || (err != nil && !strings.Contains(err.Error(), c.wrong)) {
				t.Errorf("got %v, %v; want %v, %q", got, err, c.want, c.wrong)
			}
		})
	}
}

func TestPeakMemoryOfAProcess(t *testing.T) {
	if got, err := parseStatus("Name:\tmanager\nVmPeak:\t  900 kB\nVmHWM:\t   2048 kB\nVmRSS:\t  100 kB\n"); got != 2<<20 || err != nil {
		t.Errorf("got %d, %v; want 2 MiB", got, err)
	}
	if _, err := parseStatus("Name:\tkthreadd\n"); err == nil {
		t.Error("a process without memory has a peak")
	}
}

func TestCPUTimeOfTheHost(t *testing.T) {
	if got, err := parseHost("cpu  100 20 300 9000 800 40 50 0 0 0\ncpu0 1 2 3 4 5 6 7\n"); got != 5.1 || err != nil {
		t.Errorf("got %v, %v; want 5.1", got, err)
	}
	for _, text := range []string{"", "cpu 1 2", "cpu a b c d e f g", "intr 1 2 3 4 5 6 7 8"} {
		if _, err := parseHost(text); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}

func TestTheKernelIsUnderstood(t *testing.T) {
	cost, err := readCost(os.Getpid())
	if err != nil || cost.PeakRSS < 1<<20 {
		t.Errorf("this test: %+v, %v", cost, err)
	}
}
