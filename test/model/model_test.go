// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"flag"
	"os"
	"strconv"
	"testing"
	"time"

	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/go-logr/logr"
	"pgregory.net/rapid"
)

// The environment says how much is done: MODEL is a time. Without it one short plan is played, always the same.
const (
	timeVariable, seedVariable, stepsVariable, shrinkVariable = "MODEL", "SEED", "STEPS", "SHRINK"
	usualSteps, shortSteps, usualSeed                         = 120, 30, 1
	shrinkTime                                                = 3 * time.Minute
)

func TestModel(t *testing.T) {
	limit, usual := time.Duration(0), uint64(shortSteps)
	if text := os.Getenv(timeVariable); text != "" {
		var err error
		if limit, err = time.ParseDuration(text); err != nil {
			t.Fatalf("%s: %v", timeVariable, err)
		}
		usual = usualSteps
	}
	ctrllog.SetLogger(logr.Discard())
	end := time.Now().Add(limit)
	steps := int(number(t, stepsVariable, usual))
	seed := number(t, seedVariable, usualSeed)
	w, err := newWorld(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the logs are in %s", w.plane.LogDir())
		}
		if err := w.close(t.Failed()); err != nil {
			t.Errorf("the world did not end: %v", err)
		}
	})
	carried, took := 0, time.Duration(0)
	for again := true; again && !t.Failed(); again = time.Now().Before(end) {
		ok := t.Run("seed "+strconv.FormatUint(seed, 10), func(t *testing.T) {
			o := check(t, w, seed, steps)
			carried += o.carried
			took += o.took
		})
		if !ok {
			return
		}
		seed++
	}
	t.Logf("%d steps, %s each; %d starts of the manager", carried, (took / time.Duration(max(1, carried))).Round(time.Millisecond), w.operator.Starts())
}

// check plays the plan of one seed. rapid only draws it: what it draws is shrunk step by step here, since rapid would
// try thousands of plans, and each takes seconds.
func check(t *testing.T, w *world, seed uint64, steps int) outcome {
	t.Helper()
	for name, value := range map[string]string{"checks": "1", "seed": strconv.FormatUint(seed, 10), "nofailfile": "true", "shrinktime": "0s"} {
		if err := flag.Set("rapid."+name, value); err != nil {
			t.Fatal(err)
		}
	}
	var played *outcome
	rapid.Check(t, func(rt *rapid.T) {
		p := drawPlan(rt, steps)
		if played == nil {
			o := playAndShrink(t, w, p, seed)
			played = &o
		}
		if played.broken != nil {
			rt.Fatal("a rule was broken; the report is above")
		}
	})
	return *played
}

func playAndShrink(t *testing.T, w *world, p plan, seed uint64) outcome {
	t.Helper()
	o, err := play(t.Context(), w, p, false)
	if err != nil {
		t.Fatalf("seed %d: %v\n%s", seed, err, o)
	}
	t.Logf("seed %d: %d steps in %s: %v", seed, o.carried, o.took.Round(time.Millisecond), o.counts)
	if o.broken == nil {
		return o
	}
	t.Logf("seed %d, as it was first found:\n%s", seed, o)
	limit := shrinkTime
	if text := os.Getenv(shrinkVariable); text != "" {
		if limit, err = time.ParseDuration(text); err != nil {
			t.Fatalf("%s: %v", shrinkVariable, err)
		}
	}
	smallest := shrink(context.WithoutCancel(t.Context()), w, o, limit, t.Logf)
	t.Errorf("seed %d, to be repeated with SEED=%d STEPS=%d; after %s of shrinking:\n%s", seed, seed, len(p), limit, smallest)
	return o
}

func number(t *testing.T, variable string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}
