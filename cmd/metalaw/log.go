// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"

	"github.com/go-logr/logr"
	"go.uber.org/zap/zapcore"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// everything is the level of logr below which nothing of ours lies: what slog calls debug is V(4) there.
const everything = zapcore.Level(-4)

// newLogger writes JSON lines of a level and above: debug, info or error.
func newLogger(level string, to io.Writer) (logr.Logger, error) {
	parsed, err := zapcore.ParseLevel(level)
	if err != nil {
		return logr.Logger{}, fmt.Errorf("--log-level: %w", err)
	}
	if parsed == zapcore.DebugLevel {
		parsed = everything
	}
	return zap.New(zap.UseDevMode(false), zap.Level(parsed), zap.WriteTo(to), zap.JSONEncoder(func(c *zapcore.EncoderConfig) {
		c.EncodeTime = zapcore.TimeEncoderOfLayout("2006-01-02T15:04:05.000Z07:00")
		c.EncodeLevel = func(l zapcore.Level, to zapcore.PrimitiveArrayEncoder) {
			zapcore.LowercaseLevelEncoder(max(l, zapcore.DebugLevel), to)
		}
	})), nil
}
