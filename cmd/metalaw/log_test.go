// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/go-logr/logr"
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
