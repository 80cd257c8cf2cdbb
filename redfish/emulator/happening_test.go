// SPDX-License-Identifier: Apache-2.0

package emulator

import (
	"context"
	"reflect"
	"testing"
	"time"
)

func TestAWitnessIsToldWhatTrulyHappens(t *testing.T) {
	clock := NewManualClock(time.Unix(1_700_000_000, 0))
	var got []Happening
	_, m := startFleet(t, Options{InMemory: true, Clock: clock, Delays: instant, Witness: func(h Happening) { got = append(got, h) }},
		MachineSpec{Name: "m", Drives: []DriveSpec{{Name: "nvme0n1"}}})
	m.Inject(PowerReads("Off")) // a lie changes nothing
	m.PowerBehindBack(true)
	d := m.Drives()[0]
	d.Write("data")
	d.FailErase("worn out")
	_ = d.Erase(context.Background()) // it fails, which is seen by what is missing
	d.FailErase("")
	if err := d.Erase(context.Background()); err != nil {
		t.Fatal(err)
	}
	m.PowerBehindBack(false)
	happening := func(what HappeningKind, power PowerState, drive, contents string) Happening {
		return Happening{At: clock.Now(), Machine: "m", What: what, Power: power, Drive: drive, Contents: contents}
	}
	want := []Happening{
		happening(PowerChanged, PowerOn, "", ""),
		happening(DriveWritten, "", "nvme0n1", "data"),
		happening(EraseBegun, "", "nvme0n1", "data"),
		happening(EraseBegun, "", "nvme0n1", "data"),
		happening(DriveErased, "", "nvme0n1", ""),
		happening(PowerChanged, PowerOff, "", ""),
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("told\n%v, want\n%v", got, want)
	}
}
