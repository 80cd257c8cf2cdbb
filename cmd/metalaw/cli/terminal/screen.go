// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"os"

	"golang.org/x/term"
)

// pipeWidth is how wide a line may be where Out is no terminal.
const pipeWidth = 160

// Width is how many columns a line of Out has.
func (t *Terminal) Width() int {
	if f, ok := t.Out.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return width
		}
	}
	return pipeWidth
}

// Redraws says that Out is a terminal on which a screen can be drawn anew in its place.
func (t *Terminal) Redraws() bool { return isTerminal(t.Out) && os.Getenv("TERM") != "dumb" }

// Clear empties the screen, if Out has one.
func (t *Terminal) Clear() {
	if t.Redraws() {
		t.Printf("\x1b[H\x1b[2J")
	}
}
