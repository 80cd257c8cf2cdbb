// SPDX-License-Identifier: Apache-2.0

package macprefixes

import (
	"fmt"
	"strings"
	"testing"
)

// summary is "manufacturer user scheme port" of the row for mac, or "none".
func summary(db *Database, mac string) string {
	row, ok := db.Lookup(mac)
	if !ok {
		return "none"
	}
	user := "-"
	if len(row.DefaultCredentials) > 0 {
		user = row.DefaultCredentials[0].Username
	}
	return fmt.Sprintf("%s %s %s %d", row.Manufacturer, user, row.Scheme, row.Port)
}

func parsed(t testing.TB, prefixes ...string) *Database {
	t.Helper()
	var text strings.Builder
	text.WriteString("macPrefixes:\n")
	for _, prefix := range prefixes {
		fmt.Fprintf(&text, "- {macPrefix: %q, manufacturer: %q}\n", prefix, "row "+prefix)
	}
	db, problems := Parse("m.yaml", []byte(text.String()))
	if db == nil {
		t.Fatal(problems)
	}
	return db
}

func TestLookup(t *testing.T) {
	db := parsed(t, "70:b3:d5:1", "70:b3:d5", "70:b3:d5:12:3", "70:b3:d5:12:34:56", "00:1e:67", "06:00:00:00:00:01")
	for name, c := range map[string]struct{ mac, row string }{
		"24 bits match":                 {"70:b3:d5:99:00:00", "row 70:b3:d5"},
		"28 bits win over 24":           {"70:b3:d5:1f:00:00", "row 70:b3:d5:1"},
		"36 bits win over 28":           {"70:b3:d5:12:3f:00", "row 70:b3:d5:12:3"},
		"a whole address wins over all": {"70:B3:D5:12:34:56", "row 70:b3:d5:12:34:56"},
		"leading zeros count":           {"00-1E-67-00-00-00", "row 00:1e:67"},
		"an unknown address has no row": {"70:b3:d6:00:00:00", ""},
		"the locally administered twin of a vendor's address has no row": {"02:1e:67:00:00:00", ""},
		"a locally administered address matches its own row":             {"06:00:00:00:00:01", "row 06:00:00:00:00:01"},
		"what is no address has no row":                                  {"Not Available", ""},
		"a multicast address has no row":                                 {"71:b3:d5:00:00:00", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if row, ok := db.Lookup(c.mac); row.Manufacturer != c.row || ok != (c.row != "") {
				t.Errorf("Lookup(%q) = %q, %v; want %q", c.mac, row.Manufacturer, ok, c.row)
			}
		})
	}
}

func TestLookupWithoutDatabaseFindsNothing(t *testing.T) {
	var db *Database
	if _, ok := db.Lookup("70:b3:d5:00:00:00"); ok {
		t.Error("a row out of nowhere")
	}
}

func BenchmarkLookup(b *testing.B) {
	var prefixes []string
	for i := range 10000 {
		prefixes = append(prefixes, fmt.Sprintf("70:%02x:%02x", i/256, i%256))
	}
	db := parsed(b, append(prefixes, "72:00:00:1", "72:00:00:12:3")...)
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := db.Lookup("70:12:34:56:78:9a"); !ok {
			b.Fatal("not found")
		}
	}
}
