// SPDX-License-Identifier: Apache-2.0

package pid1

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// consoleBacklog is how many lines wait for a console that is slow; further lines are lost on that console alone.
const consoleBacklog = 256

// console prints lines with the uptime of the machine. A console that takes no more characters holds nobody up.
type console struct {
	uptime func() time.Duration
	mu     sync.Mutex
	queues []chan string
	wait   sync.WaitGroup
}

// newConsole prints to every one of the outputs.
func newConsole(uptime func() time.Duration, outputs ...io.Writer) *console {
	c := &console{uptime: uptime}
	for _, output := range outputs {
		queue := make(chan string, consoleBacklog)
		c.queues = append(c.queues, queue)
		c.wait.Go(func() {
			for line := range queue {
				_, _ = io.WriteString(output, line) // nothing else could be told of it
			}
		})
	}
	return c
}

// say prints one line: "metalprobe: [   3.21] network: eth0 10.0.2.15/24".
func (c *console) say(step, format string, args ...any) {
	text := strings.TrimRight(fmt.Sprintf(format, args...), "\r\n")
	line := fmt.Sprintf("metalprobe: [%7.2f] %s: %s\r\n", c.uptime().Seconds(), step, printable(text))
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, queue := range c.queues {
		select {
		case queue <- line:
		default:
		}
	}
}

// flush waits until all lines are printed, for half a second at most. Nothing is printed afterwards.
func (c *console) flush() {
	c.mu.Lock()
	for _, queue := range c.queues {
		close(queue)
	}
	c.queues = nil
	c.mu.Unlock()
	printed := make(chan struct{})
	go func() { c.wait.Wait(); close(printed) }()
	select {
	case <-printed:
	case <-time.After(500 * time.Millisecond):
	}
}

// printable keeps a terminal from being told anything but text.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
}

// Handle prints what the agent logs: the message, and then its attributes.
func (c *console) Handle(_ context.Context, record slog.Record) error {
	text := record.Message
	record.Attrs(func(a slog.Attr) bool {
		if a.Key != "server" {
			text += fmt.Sprintf(" %s=%v", a.Key, a.Value)
		}
		return true
	})
	step := "agent"
	if record.Level >= slog.LevelWarn {
		step = "agent: " + strings.ToLower(record.Level.String())
	}
	c.say(step, "%s", text)
	return nil
}

// Enabled leaves out what is only for the makers of the agent.
func (c *console) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

// WithAttrs is not needed by the agent: each of its lines names what it speaks of.
func (c *console) WithAttrs([]slog.Attr) slog.Handler { return c }

// WithGroup is not needed by the agent.
func (c *console) WithGroup(string) slog.Handler { return c }
