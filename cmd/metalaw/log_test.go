// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestWhatALogLevelShows(t *testing.T) {
	for level, want := range map[string]string{
		"debug": "debug:each request debug:detail info:news error:trouble",
		"info":  "info:news error:trouble",
		"error": "error:trouble",
	} {
		t.Run(level, func(t *testing.T) {
			var out bytes.Buffer
			logger, err := newLogger(level, &out)
			if err != nil {
				t.Fatal(err)
			}
			slog.New(logr.ToSlogHandler(logger)).Debug("each request")
			logger.V(1).Info("detail")
			logger.Info("news")
			logger.Error(nil, "trouble")
			var got []string
			for line := range strings.Lines(out.String()) {
				var entry struct{ Level, Msg string }
				if err := json.Unmarshal([]byte(line), &entry); err != nil {
					t.Fatal(err)
				}
				got = append(got, entry.Level+":"+entry.Msg)
			}
			if strings.Join(got, " ") != want {
				t.Errorf("got %v, want %s", got, want)
			}
		})
	}
}

func TestAnErrorThatPassesByItselfIsNewsWithoutAStackTrace(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "servers"}, "a", errors.New("changed"))
	cut := &url.Error{Op: "Get", URL: "https://api", Err: context.Canceled}
	trouble := errors.New("down")
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"a write that came after another":     {conflict, "info"},
		"one that is wrapped":                 {fmt.Errorf("observe: %w", conflict), "info"},
		"a call that was cut off":             {cut, "info"},
		"several of these":                    {errors.Join(conflict, cut), "info"},
		"one of these, and trouble":           {errors.Join(conflict, trouble), "error, with a stack trace"},
		"a call that took too long":           {context.DeadlineExceeded, "error, with a stack trace"},
		"trouble":                             {trouble, "error, with a stack trace"},
		"trouble that is no error, just told": {nil, "error, with a stack trace"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			logger, err := newLogger("info", &out)
			if err != nil {
				t.Fatal(err)
			}
			logger.WithName("controller").WithValues("server", "a").Error(c.err, "Reconciler error")
			var entry struct{ Level, Msg, Logger, Server, Stacktrace string }
			if err := json.Unmarshal(out.Bytes(), &entry); err != nil {
				t.Fatal(err)
			}
			got := entry.Level
			if entry.Stacktrace != "" {
				got += ", with a stack trace"
			}
			if got != c.want || entry.Msg != "Reconciler error" || entry.Logger != "controller" || entry.Server != "a" {
				t.Errorf("got %+v", entry)
			}
		})
	}
}

func TestACertificateThatIsToBeMadeIsToldWithoutAStackTrace(t *testing.T) {
	var out bytes.Buffer
	logger, err := newLogger("info", &out)
	if err != nil {
		t.Fatal(err)
	}
	traced := traced{errors.New("Cert secret is not well-formed, missing ca.crt")}
	logger.WithName("cert-rotation").WithValues("name", "metalaw-validating").Error(traced, "secret is not well-formed")
	if n := bytes.Count(out.Bytes(), []byte("\n")); n != 1 {
		t.Errorf("%d lines", n)
	}
	entry := map[string]any{}
	if err := json.Unmarshal(out.Bytes(), &entry); err != nil {
		t.Fatal(err)
	}
	delete(entry, "ts")
	want := map[string]any{"level": "error", "logger": "cert-rotation", "msg": "secret is not well-formed", "name": "metalaw-validating",
		"error": "Cert secret is not well-formed, missing ca.crt"}
	if diff := cmp.Diff(want, entry); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestTheValuesOfALoggerAreLookedAtForALineAlone(t *testing.T) {
	var out bytes.Buffer
	logger, err := newLogger("info", &out)
	if err != nil {
		t.Fatal(err)
	}
	var looked looks
	logger = logger.WithName("controller").WithValues("server", &looked, "try", 1)
	logger.V(1).Info("detail")
	if looked != 0 || out.Len() != 0 {
		t.Errorf("looked at %d times for a line that is not written", looked)
	}
	logger.WithValues("try", 2, "last", true).Info("news", "state", "Ready")
	logger.Info("news")
	if looked != 2 {
		t.Errorf("looked at %d times for two lines", looked)
	}
	for _, want := range []string{`"server":"a","try":1,"try":2,"last":true,"state":"Ready"}`, `"server":"a","try":1}`} {
		line, _ := out.ReadString('\n')
		if !strings.HasSuffix(strings.TrimSpace(line), want) {
			t.Errorf("wrote %s, want it to end with %s", line, want)
		}
	}
}

// looks counts how often a value was looked at.
type looks int

// MarshalLog implements logr.Marshaler.
func (l *looks) MarshalLog() any {
	*l++
	return "a"
}

// traced is an error that tells where it arose, as those of some libraries do.
type traced struct{ error }

// Format implements fmt.Formatter.
func (e traced) Format(f fmt.State, _ rune) {
	_, _ = f.Write([]byte(e.Error() + "\nmain.main\n\tmain.go:1"))
}
