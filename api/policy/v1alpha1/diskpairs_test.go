// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// disksOf reads disks, each as "name wwid serial transport", where "-" is none.
func disksOf(lines ...string) []CustodyDisk {
	var all []CustodyDisk
	for _, line := range lines {
		w := strings.Fields(line)
		for i := range w {
			w[i] = strings.TrimPrefix(w[i], "-")
		}
		all = append(all, CustodyDisk{Name: w[0], WWID: w[1], Serial: w[2], Transport: w[3]})
	}
	return all
}

func TestWhichRememberedDisksWereNotErased(t *testing.T) {
	type lines = []string
	for name, c := range map[string]struct{ remembered, erased, left lines }{
		"none, whatever they are called now": {lines{"sdb W - -", "sda - S -"}, lines{"sda W - sata", "sdb V S sata"}, nil},
		"the SATA twin that is not seen":     {lines{"sda W S1 sata", "sdb W S2 sata"}, lines{"sda W S2 sata"}, lines{"sda W S1 sata"}},
		"none of two SATA twins":             {lines{"sda W S1 sata", "sdb W S2 sata"}, lines{"sda W S2 sata", "sdb W S1 sata"}, nil},
		"the NVMe twin that is not seen": {
			lines{"nvme0n1 W S1 nvme/pcie", "nvme1n1 W S2 nvme/pcie"}, lines{"nvme0n1 W S1 nvme/pcie"}, lines{"nvme1n1 W S2 nvme/pcie"}},
		"the twin of which a former build kept no transport": {lines{"sda W S1 -"}, lines{"sda W S2 sata"}, lines{"sda W S1 -"}},
		"none of two SAS paths with two serial numbers":      {lines{"sda W S1 sas", "sdb W S2 sas"}, lines{"sda W S1 sas"}, nil},
		"none, where the transport is not known":             {lines{"sda W S1 -"}, lines{"sda W S2 -"}, nil},
		"none, where a serial number is a placeholder":       {lines{"sda W S1 sata"}, lines{"sda W 000000 sata"}, nil},
		"one known by serial and one known by name, by one disk": {
			lines{"- - S -", "sda - - -"}, lines{"sda - S -"}, lines{"sda - - -"}},
		"one known by wwid and one known by serial, by one disk": {
			lines{"sda W - -", "sdb - S -"}, lines{"sda W S -"}, lines{"sdb - S -"}},
		"none, where the one disk makes room for the other": {
			lines{"- - S -", "sda - - -"}, lines{"sda - S -", "sdb - S -"}, nil},
		"one of two, by two paths to one erased disk": {
			lines{"sda W S sas", "- - S -"}, lines{"sda W S sas", "sdb W S sas"}, lines{"- - S -"}},
		"the second of two with a serial number of zeros": {
			lines{"sda - 0000 -", "sdb - 0000 -"}, lines{"sdb - 0000 -"}, lines{"sda - 0000 -"}},
		"none with a wwid of zeros that has another name now": {lines{"sda 000000 - -"}, lines{"sdb 000000 - -"}, nil},
		"each of two with a wwid of zeros":                    {lines{"sda 00 - -", "sdb 00 - -"}, lines{"sdc 00 - -"}, lines{"sdb 00 - -"}},
		"one with a wwid of zeros, by its serial number":      {lines{"sda 00 S1 -", "sdb 00 S2 -"}, lines{"sda 00 S2 -"}, lines{"sda 00 S1 -"}},
		"one of which nothing is known, in any case":          {lines{"- - - -"}, lines{"sda W S sata"}, lines{"- - - -"}},
		"a wwid by its serial number alone":                   {lines{"sda W S -"}, lines{"sda - S -"}, lines{"sda W S -"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got, want := NotErased(disksOf(c.remembered...), disksOf(c.erased...)), disksOf(c.left...); !reflect.DeepEqual(got, want) {
				t.Errorf("got %v\nwant %v", got, want)
			}
		})
	}
}

func TestWhichReportedDisksWereNotErasedInTheSameBoot(t *testing.T) {
	type lines = []string
	for name, c := range map[string]struct{ reported, erased, left lines }{
		"none, by paths":                      {lines{"sda - - -", "sdb 00 0 -"}, lines{"sda - - -", "sdb 00 0 -"}, nil},
		"none, by what both have":             {lines{"sda W S -"}, lines{"sdb - S -"}, nil},
		"the twin that was not erased":        {lines{"sda W S1 sata", "sdb W S2 sata"}, lines{"sda W S1 sata"}, lines{"sdb W S2 sata"}},
		"one of two with one serial number":   {lines{"sda - S -", "sdb - S -"}, lines{"sda - S -"}, lines{"sdb - S -"}},
		"no second path to an erased disk":    {lines{"sda W S sas", "sdb W S sas"}, lines{"sda W S sas"}, nil},
		"one whose name another disk has now": {lines{"sda W - -"}, lines{"sda V - -"}, lines{"sda W - -"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got, want := NotCovered(disksOf(c.reported...), disksOf(c.erased...)), disksOf(c.left...); !reflect.DeepEqual(got, want) {
				t.Errorf("got %v\nwant %v", got, want)
			}
		})
	}
}

func TestWhichDisksAreRememberedBesides(t *testing.T) {
	type lines = []string
	for name, c := range map[string]struct{ known, seen, want lines }{
		"each of two SATA twins":                  {nil, lines{"sda W S1 sata", "sdb W S2 sata"}, lines{"sda W S1 sata", "sdb W S2 sata"}},
		"the twin of one that is known":           {lines{"sda W S1 -"}, lines{"sda W S1 sata", "sdb W S2 sata"}, lines{"sda W S1 sata", "sdb W S2 sata"}},
		"the twin of one known without a serial":  {lines{"sda W - -"}, lines{"sda W S1 sata", "sdb W S2 sata"}, lines{"sda W S1 sata", "sdb W S2 sata"}},
		"no second path":                          {nil, lines{"sda W S sas", "sdb W S sas"}, lines{"sda W S sas"}},
		"each with one careless serial number":    {lines{"sda - S -"}, lines{"sda - S -", "sdb - S -"}, lines{"sda - S -", "sdb - S -"}},
		"each with a wwid of zeros":               {nil, lines{"sda 00 - -", "sdb 00 - -"}, lines{"sda 00 - -", "sdb 00 - -"}},
		"one that shows more than what is known":  {lines{"sda - S -"}, lines{"sda W S -"}, lines{"sda W S -"}},
		"none that was known by its name":         {lines{"sda - - -"}, lines{"sda W S sata"}, lines{"sda W S sata"}},
		"one that shows less":                     {lines{"sda W S -"}, lines{"sda - S -"}, lines{"sda W S -", "sda - S -"}},
		"no disk for two that are known":          {lines{"- - S -", "sda - - -"}, lines{"sda - S -"}, lines{"- - S -", "sda - - -"}},
		"no disk with a wwid of zeros that moved": {lines{"sda 00 - -"}, lines{"sdb 00 - -"}, lines{"sda 00 - -"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got, want := Remember(disksOf(c.known...), disksOf(c.seen...)), disksOf(c.want...); !reflect.DeepEqual(got, want) {
				t.Errorf("got %v\nwant %v", got, want)
			}
		})
	}
}

// Of any disks, as many are left as there are more of them than erased ones, or more, and never one that was erased by itself.
func FuzzNotErased(f *testing.F) {
	f.Add([]byte{1, 2, 3, 9, 17}, []byte{1, 3})
	f.Fuzz(func(t *testing.T, remembered, erased []byte) {
		if len(remembered) > 64 || len(erased) > 64 {
			return
		}
		some := func(codes []byte) (all []CustodyDisk) {
			for _, b := range codes {
				pick := func(shift int, of ...string) string { return of[int(b>>shift)%len(of)] }
				all = append(all, CustodyDisk{
					Name: pick(0, "", "sda", "sdb"), Serial: pick(2, "", "S1", "S2", "000"), WWID: pick(4, "", "W1", "W2", "000"),
					Transport: pick(6, "", "sata", "sas", "nvme/pcie"),
				})
			}
			return all
		}
		of, by := some(remembered), some(erased)
		_, firsts := fold(of, OneDisk)
		_, left := fold(NotErased(of, by), OneDisk)
		if len(firsts)-len(left) > len(by) {
			t.Errorf("%d disks stand for %d", len(by), len(firsts)-len(left))
		}
		for _, disk := range NotErased(of, of) {
			if disk.Key() != (DiskKey{}) {
				t.Errorf("%s was erased itself", fmt.Sprint(disk))
			}
		}
	})
}
