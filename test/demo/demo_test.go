// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func TestOptionsSayWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"too few servers", []string{"--servers=5"}, "--servers 5: the story needs 6 to 1000"},
		{"something that is no flag", []string{"once"}, `unexpected argument "once"`},
		{"an unknown flag", []string{"--fast"}, "not defined: -fast"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := parseOptions(c.args); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q in it", err, c.want)
			}
		})
	}
}

func TestMountReplacesAllFilesAtOnce(t *testing.T) {
	m := &mount{dir: t.TempDir()}
	for _, version := range []string{"first", "first", "second"} {
		secret := &corev1.Secret{Data: map[string][]byte{"tls.crt": []byte(version), "tls.key": []byte(version)}}
		if err := m.show(secret); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"tls.crt", "tls.key"} {
			if text, err := os.ReadFile(filepath.Join(m.dir, name)); err != nil || string(text) != version {
				t.Errorf("%s: %q, %v; want %q", name, text, err, version)
			}
		}
	}
	if versions, err := filepath.Glob(filepath.Join(m.dir, "..version-*")); err != nil || len(versions) != 1 || m.version != 2 {
		t.Errorf("versions %v after %d changes, %v; want the second alone", versions, m.version, err)
	}
}

func TestMountOfAnEmptySecretShowsNothing(t *testing.T) {
	m := &mount{dir: t.TempDir()}
	if err := m.show(&corev1.Secret{}); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(m.dir); err != nil || len(entries) != 0 {
		t.Errorf("%v, %v", entries, err)
	}
}

func TestPlainViewGathersMovesOfOneKind(t *testing.T) {
	var out bytes.Buffer
	v := newPlainView(&out)
	v.open([]string{"Onboard"}, 3, "/logs")
	v.chapter(0)
	v.step("all are Available", 0, 1)
	for _, server := range []string{"a", "b", "c"} {
		v.moved(move{server, "Discovery", "Available", "ProbeReported"})
	}
	v.moved(move{"d", "", "Initial", ""})
	v.done("all are Available", time.Second)
	v.close(nil)
	for _, want := range []string{
		"1/1 Onboard\n",
		"    3 servers                Discovery -> Available     ProbeReported\n",
		"    d                        -> Initial                 \n",
		"ok  all are Available (1.0s)\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Error("the plain view prints escape sequences")
	}
}

func TestTableKeepsTheServersThatChangedLast(t *testing.T) {
	at := time.Unix(0, 0)
	rows := []row{
		{name: "a", state: "Available", at: at}, {name: "b", state: "Reserved", at: at.Add(2)},
		{name: "c", state: "Error", at: at}, {name: "d", state: "Cleanup", at: at.Add(1)}, {name: "e", state: "Available", at: at},
	}
	shown, rest := mostRecent(rows, 3)
	var names []string
	for _, r := range shown {
		names = append(names, r.name)
	}
	if want := []string{"b", "d"}; !slices.Equal(names, want) || rest != " and 3 more: 2 Available, 1 Error" {
		t.Errorf("shown %v, rest %q", names, rest)
	}
	for _, room := range []int{0, 2} {
		if got := tableOf(rows, room, 120); got != "" {
			t.Errorf("a table in %d lines: %q", room, got)
		}
	}
	if got := strings.Count(tableOf(rows, 3, 120), "\n") + 1; got != 3+4 {
		t.Errorf("%d lines", got)
	}
}

func TestAStalledStepSaysWhatWasSeen(t *testing.T) {
	w := &world{trouble: make(chan error, 1)}
	teller := &teller{world: w, view: newPlainView(io.Discard)}
	err := teller.take(t.Context(), step{name: "s", limit: time.Millisecond, await: func(context.Context) (sight, error) {
		return counted(3, 20, "servers"), nil
	}})
	var stalled *stallError
	if !errors.As(err, &stalled) || stalled.seen != "3 of 20 servers" {
		t.Errorf("%v, %+v", err, stalled)
	}
}

func TestAStepEndsWhenAProgramEnds(t *testing.T) {
	w := &world{trouble: make(chan error, 1)}
	teller := &teller{world: w, view: newPlainView(io.Discard)}
	w.report(errors.New("metalaw: ended"))
	err := teller.take(t.Context(), step{name: "s", await: func(context.Context) (sight, error) { return sight{}, nil }})
	if err == nil || err.Error() != "metalaw: ended" {
		t.Errorf("%v", err)
	}
}

func TestRecordingIsWellFormedAndBeginsAtOnce(t *testing.T) {
	svg := animate("metalaw demo\n\n1/6 Bring up\n   9.7s  ok  a <b> & \"c\" (9.7s)\n" + strings.Repeat("x", 500) + "\n")
	decoder := xml.NewDecoder(bytes.NewReader(svg))
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"\n0.00%{transform:translateY(", "a &lt;b&gt; &amp; &#34;c&#34;", "…</text>"} {
		if !bytes.Contains(svg, []byte(want)) {
			t.Errorf("no %q in\n%s", want, svg)
		}
	}
}

func TestWrapBreaksAtSpaces(t *testing.T) {
	if got, want := wrap("one two three\nfour", 8), []string{"one two", "three", "four"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestAProgramIsStartedAgainUntilItCrashesInARow(t *testing.T) {
	const short, long = time.Second, time.Hour
	type end struct {
		life   time.Duration
		killed bool
	}
	for name, c := range map[string]struct {
		ends  []end
		pause time.Duration
		again bool
	}{
		"its first end is followed soon":            {[]end{{long, false}}, time.Second, true},
		"each short life makes the pause longer":    {[]end{{long, true}, {short, true}, {short, true}}, 4 * time.Second, true},
		"up to a bound, however often it is killed": {slices.Repeat([]end{{short, true}}, 100), 15 * time.Second, true},
		"a long life begins anew":                   {[]end{{short, false}, {short, false}, {short, false}, {long, false}}, time.Second, true},
		"crashes in a row are the end of it":        {slices.Repeat([]end{{short, false}}, 4), 8 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			var lives series
			var pause time.Duration
			var again bool
			for _, e := range c.ends {
				pause, again = lives.after(e.life, e.killed)
			}
			if pause != c.pause || again != c.again {
				t.Errorf("pause %s, again %v", pause, again)
			}
		})
	}
}
