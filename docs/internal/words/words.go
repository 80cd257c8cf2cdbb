// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"strings"
)

// replace says for each word that the project gave up what to write instead. Words that plain English needs as well
// (held, standing, run) are not here: a reader has to judge them.
var replace = map[string]string{
	"somebody":   "the actor: the operator, a user, the manager",
	"nobody":     "the actor, with not",
	"anybody":    "the actor",
	"everybody":  "the actor",
	"whoever":    "the actor, or: a user who",
	"visit":      "reconcile",
	"visits":     "reconciles",
	"desk":       "hardware cache",
	"wakes":      "triggers, requeues",
	"treadmill":  "endless loop",
	"muster":     "members",
	"roster":     "members",
	"neighbours": "other claims of the namespace",
	"neighbors":  "other claims of the namespace",
	"manuscript": "bundle source",
	"census":     "counters",
	"tally":      "counters",
	"ledger":     "counters",
	"seldom":     "rarely, rate limit",
	"patience":   "backoff",
	"attained":   "feasible",
	"judgements": "placement results",
	"anatomy":    "AST",
}

var word = regexp.MustCompile(`[\p{L}\p{N}]`)

// finding is one thing to change, at its line.
type finding struct {
	line int
	text string
}

// counts are totals over sentences.
type counts struct{ sentences, overAim, overLimit, words int }

func (c *counts) add(more counts) {
	c.sentences += more.sentences
	c.overAim += more.overAim
	c.overLimit += more.overLimit
	c.words += more.words
}

// String says the totals in one line.
func (c counts) String() string {
	return fmt.Sprintf("%d sentences, %d over %d words, %d over %d, %d words to replace", c.sentences, c.overAim, aim, c.overLimit, limit, c.words)
}

// verdict is what to change in a text.
type verdict struct {
	findings []finding
	counts
	// strict says that findings are failures.
	strict bool
}

// judge measures every sentence and looks for words to replace.
func judge(sentences []sentence) verdict {
	v := verdict{counts: counts{sentences: len(sentences)}}
	for _, s := range sentences {
		words := wordsOf(s.text)
		if len(words) > aim {
			v.overAim++
		}
		if len(words) > limit {
			v.overLimit++
			v.findings = append(v.findings, finding{s.line, fmt.Sprintf("a sentence of %d words: %s", len(words), s.text)})
		}
		for _, w := range words {
			w = strings.ToLower(strings.Trim(w, `.,;:!?()"'*_`))
			if instead, is := replace[w]; is {
				v.words++
				v.findings = append(v.findings, finding{s.line, fmt.Sprintf("write for %q: %s", w, instead)})
			}
		}
	}
	return v
}

// wordsOf splits a sentence; signs without a letter or digit are no words.
func wordsOf(text string) []string {
	var words []string
	for _, w := range strings.Fields(text) {
		if word.MatchString(w) {
			words = append(words, w)
		}
	}
	return words
}
