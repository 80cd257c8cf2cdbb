// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"

	"github.com/go-logr/logr"
)

// requestMessage is what the pool of BMC clients logs of each request, in the goroutine that made it.
const requestMessage = "redfish request"

// sink is the manager's log: it keeps what a controller says of itself, and hears of each request to a BMC.
type sink struct {
	recorder *recorder
	fails    func(text string)
	values   []any
}

// Init implements logr.LogSink.
func (*sink) Init(logr.RuntimeInfo) {}

// Enabled implements logr.LogSink.
func (*sink) Enabled(int) bool { return true }

// Info implements logr.LogSink.
func (s *sink) Info(_ int, message string, values ...any) {
	if message == requestMessage {
		s.recorder.asked(logr.New(s), pairs(append(slices.Clone(s.values), values...)))
	}
}

// Error implements logr.LogSink.
func (s *sink) Error(err error, message string, _ ...any) {
	s.fails(fmt.Sprintf("%s: %v", message, err))
}

// WithValues implements logr.LogSink.
func (s *sink) WithValues(values ...any) logr.LogSink {
	return &sink{s.recorder, s.fails, append(slices.Clone(s.values), values...)}
}

// WithName implements logr.LogSink.
func (s *sink) WithName(string) logr.LogSink { return s }

func pairs(values []any) map[string]any {
	all := map[string]any{}
	for i := 0; i+1 < len(values); i += 2 {
		all[fmt.Sprint(values[i])] = plain(values[i+1])
	}
	return all
}

// plain makes a number of each integer.
func plain(value any) any {
	if n, is := value.(int64); is {
		return int(n)
	}
	return value
}
