// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/go-logr/logr"
	"go.uber.org/zap/zapcore"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// everything is the level of logr below which nothing of ours lies: what slog calls debug is V(4) there.
const everything = zapcore.Level(-4)

// newLogger writes JSON lines of a level and above: debug, info or error. Errors that pass by themselves are info.
func newLogger(level string, to io.Writer) (logr.Logger, error) {
	parsed, err := zapcore.ParseLevel(level)
	if err != nil {
		return logr.Logger{}, fmt.Errorf("--log-level: %w", err)
	}
	if parsed == zapcore.DebugLevel {
		parsed = everything
	}
	options := []zap.Opts{zap.UseDevMode(false), zap.Level(parsed), zap.WriteTo(to), zap.JSONEncoder(func(c *zapcore.EncoderConfig) {
		c.EncodeTime = zapcore.TimeEncoderOfLayout("2006-01-02T15:04:05.000Z07:00")
		c.EncodeLevel = func(l zapcore.Level, to zapcore.PrimitiveArrayEncoder) {
			zapcore.LowercaseLevelEncoder(max(l, zapcore.DebugLevel), to)
		}
	})}
	logger := zap.New(options...)
	brief := zap.New(append(options, zap.StacktraceLevel(zapcore.PanicLevel))...)
	return logger.WithSink(calm{LogSink: logger.GetSink(), brief: brief.GetSink()}), nil
}

// rotation is the name of the logger of the library that makes the certificates. It tells as errors what it does again by
// itself, such as at each first start, when there is no certificate yet; where in the library that is tells nobody anything.
const rotation = "cert-rotation"

// calm is a sink that tells errors which pass by themselves as what they are: news, without a stack trace. It keeps the values
// that go with a logger until a line is written: each reconcile has a logger of its own, and few write anything.
type calm struct {
	logr.LogSink
	// brief writes to the same place, and no stack trace.
	brief logr.LogSink
	// bare writes of an error its words alone, and not where it arose.
	bare bool
	// values go with each line.
	values []any
}

// Info implements logr.LogSink.
func (c calm) Info(level int, message string, more ...any) {
	c.LogSink.Info(level, message, slices.Concat(c.values, more)...)
}

// Error implements logr.LogSink.
func (c calm) Error(err error, message string, more ...any) {
	if !passes(err) {
		if c.bare && err != nil {
			err = errors.New(err.Error())
		}
		c.LogSink.Error(err, message, slices.Concat(c.values, more)...)
		return
	}
	if c.Enabled(0) {
		c.Info(0, message, append([]any{"passing", err.Error()}, more...)...)
	}
}

// WithValues implements logr.LogSink.
func (c calm) WithValues(more ...any) logr.LogSink {
	c.values = slices.Concat(c.values, more)
	return c
}

// WithName implements logr.LogSink.
func (c calm) WithName(name string) logr.LogSink {
	c.LogSink, c.brief = c.LogSink.WithName(name), c.brief.WithName(name)
	if name == rotation {
		c.LogSink, c.bare = c.brief, true
	}
	return c
}

// passes says that there is nothing to an error but writes that came after somebody else's, which are made again, and
// calls that were cut off because the manager stops.
func passes(err error) bool {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		return !slices.ContainsFunc(many.Unwrap(), func(one error) bool { return !passes(one) })
	}
	if inner := errors.Unwrap(err); inner != nil {
		return passes(inner)
	}
	return err == context.Canceled || apierrors.IsConflict(err) //nolint:errorlint // Nothing is wrapped here.
}
