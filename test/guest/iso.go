// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/metalaw/metalaw/metalprobe"
)

const (
	isoSector = 2048
	// isoRoot is where the primary volume descriptor has the record of the root folder.
	isoRoot = 16*isoSector + 156
	// isoRecords bounds the records of a folder that are read.
	isoRecords = 1000
)

var errISO = errors.New("the ISO cannot be read")

// fileOnISO reads a file of an ISO 9660 image with Rock Ridge names, as an operating system finds it; nil where there is none.
func fileOnISO(iso []byte, path ...string) ([]byte, error) {
	if len(iso) < 17*isoSector || string(iso[16*isoSector+1:16*isoSector+6]) != "CD001" {
		return nil, errISO
	}
	content, err := extent(iso, iso[isoRoot:])
	for _, name := range path {
		if content == nil || err != nil {
			return nil, err
		}
		content, err = inFolder(iso, content, name)
	}
	return content, err
}

// extent is what a directory record leads to.
func extent(iso, record []byte) ([]byte, error) {
	from, size := int64(binary.LittleEndian.Uint32(record[2:]))*isoSector, int64(binary.LittleEndian.Uint32(record[10:]))
	if from+size > int64(len(iso)) {
		return nil, errISO
	}
	return iso[from : from+size], nil
}

// inFolder finds an entry by its Rock Ridge name.
func inFolder(iso, folder []byte, name string) ([]byte, error) {
	for at, records := 0, 0; at+34 < len(folder) && records < isoRecords; records++ {
		length := int(folder[at])
		if length == 0 { // the rest of this sector is empty
			at += isoSector - at%isoSector
			continue
		}
		if length < 34 || at+length > len(folder) {
			return nil, errISO
		}
		record := folder[at : at+length]
		if rockRidgeName(record) == name {
			return extent(iso, record)
		}
		at += length
	}
	return nil, nil
}

// rockRidgeName is the name in the field NM of a directory record; empty where there is none.
func rockRidgeName(record []byte) string {
	at := 33 + int(record[32])
	at += at % 2
	for at+4 <= len(record) {
		length := int(record[at+2])
		if length < 4 || at+length > len(record) {
			return ""
		}
		if string(record[at:at+2]) == "NM" && length > 5 {
			return string(record[at+5 : at+length])
		}
		at += length
	}
	return ""
}

// PoweredOnFromISO runs a machine from virtual media until it is powered off. The BMC reads the ISO until it can be had.
func (g *Guests) PoweredOnFromISO(ctx context.Context, machine Machine, read func(context.Context) ([]byte, error)) {
	if !metalprobe.Wait(ctx, g.options.FirmwareDelay) {
		return
	}
	var iso []byte
	err := g.insist(ctx, machine.UUID, func() (err error) {
		iso, err = read(ctx)
		return err
	})
	if err != nil {
		return // powered off before there was an ISO
	}
	data := bootData{Image: "ISO"}
	text, err := fileOnISO(iso, "metalprobe", "config.json")
	if err == nil && text != nil {
		var config metalprobe.Config
		if config, err = metalprobe.ParseConfig(text); err == nil {
			g.runAgent(ctx, machine, data, config)
			return
		}
	}
	if err != nil {
		g.options.Log.Error("the ISO cannot be used", "server", machine.UUID, "error", fmt.Errorf("metalprobe/config.json: %w", err))
		return
	}
	g.runImage(ctx, machine, data)
}
