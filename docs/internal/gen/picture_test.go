// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// wide is about as wide as a letter of the picture's font is on average, in pixels.
const wide = 6.6

func TestNoTextOfThePictureOfCostsIsCutOff(t *testing.T) {
	root, err := repository()
	if err != nil {
		t.Fatal(err)
	}
	picture, err := costPicture(root)
	if err != nil {
		t.Fatal(err)
	}
	number := func(text string) float64 {
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	element := regexp.MustCompile(`translate\((\S+) |<text x="(\S+)" y="(\S+)"[^>]*?(middle|end|)"?>([^<]*)<`)
	origin, texts := 0.0, 0
	for _, m := range element.FindAllStringSubmatch(picture, -1) {
		if m[1] != "" {
			origin = number(m[1])
			continue
		}
		texts++
		width := float64(len(m[5])) * wide
		right := origin + number(m[2]) + map[string]float64{"": width, "middle": width / 2}[m[4]]
		if right > pictureWidth || number(m[3])+marginTop > pictureHeight {
			t.Errorf("%q ends at %.0f", m[5], right)
		}
	}
	if texts < 10 {
		t.Errorf("only %d texts were found", texts)
	}
}

func TestNoTableOfTheReferenceIsDoubled(t *testing.T) {
	root, err := repository()
	if err != nil {
		t.Fatal(err)
	}
	for name, build := range map[string]func(string) (string, error){"flags": flagsPage, "annotations": annotationsPage} {
		page, err := build(root)
		if err != nil {
			t.Fatal(err)
		}
		var headings []string
		for section := range strings.SplitSeq(page, "\n## ") {
			title, body, _ := strings.Cut(section, "\n")
			if slices.Contains(headings, title) {
				t.Errorf("%s: the heading %q stands twice", name, title)
			}
			headings = append(headings, title)
			var rows []string
			for row := range strings.SplitSeq(body, "\n") {
				if strings.HasPrefix(row, "| `") && slices.Contains(rows, row) {
					t.Errorf("%s: %s: the row %s stands twice", name, title, row)
				}
				rows = append(rows, row)
			}
		}
	}
}

func TestTheREADMEListsEachPartOfTheDemo(t *testing.T) {
	var want, got []string
	// The order is that of story.go; the titles stand where each part is told.
	order := read(t, "test/demo/story.go")
	parts := regexp.MustCompile(`(?m)^\t\t(\w+)\(w\),`).FindAllStringSubmatch(order, -1)
	for _, file := range []string{"bringup", "onboarding", "claims", "refusals", "operations", "maintenance", "release"} {
		title := regexp.MustCompile(`chapter\{title: "(.*?)"`).FindStringSubmatch(read(t, "test/demo/story_"+file+".go"))
		if title == nil {
			t.Fatalf("story_%s.go has no title", file)
		}
		want = append(want, title[1])
	}
	for _, m := range regexp.MustCompile(`(?m)^\d\. \*\*(.*?)\*\*: `).FindAllStringSubmatch(read(t, "README.md"), -1) {
		got = append(got, m[1])
	}
	if !slices.Equal(got, want) || len(parts) != len(want) || !strings.Contains(read(t, "README.md"), "goes through seven parts") {
		t.Errorf("README.md lists %q; the demo has %d parts: %q", got, len(parts), want)
	}
}
