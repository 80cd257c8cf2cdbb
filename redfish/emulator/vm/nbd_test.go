// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
)

// client asks an NBD server as QEMU does.
type client struct {
	t    *testing.T
	conn net.Conn
}

func (c client) read(words ...any) {
	c.t.Helper()
	if err := receive(c.conn, words...); err != nil {
		c.t.Fatal(err)
	}
}

func (c client) write(words ...any) {
	c.t.Helper()
	if err := send(c.conn, words...); err != nil {
		c.t.Fatal(err)
	}
}

// ask sends a request and returns the answer's code and data.
func (c client) ask(kind uint16, offset uint64, length uint32, data []byte) (code uint32, read []byte) {
	c.t.Helper()
	c.write(uint32(nbdRequest), uint16(0), kind, uint64(7), offset, length, data)
	var magic uint32
	var handle uint64
	c.read(&magic, &code, &handle)
	if magic != nbdReply || handle != 7 {
		c.t.Fatalf("reply %x of request %d", magic, handle)
	}
	if kind == nbdRead && code == 0 {
		read = make([]byte, length)
		c.read(read)
	}
	return code, read
}

func TestADiskOverNBDCanLieAndFail(t *testing.T) {
	dir := t.TempDir()
	image := filepath.Join(dir, "disk.img")
	const size = 1 << 16
	if err := CreateDisk(image, size); err != nil {
		t.Fatal(err)
	}
	server, err := Serve(image, filepath.Join(dir, "nbd"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	}()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "unix", filepath.Join(dir, "nbd"))
	if err != nil {
		t.Fatal(err)
	}
	c := client{t, conn}
	var greeting [18]byte
	c.read(&greeting)
	c.write(uint32(3), uint64(nbdOption), uint32(8), uint32(0)) // structured replies are not known
	var reply struct {
		Magic                uint64
		Option, Kind, Length uint32
	}
	c.read(&reply)
	if reply.Kind != nbdUnsupported {
		t.Fatalf("%+v", reply)
	}
	c.write(uint64(nbdOption), uint32(nbdGo), uint32(6), uint32(0), uint16(0))
	var kind, flags uint16
	var told uint64
	c.read(&reply, &kind, &told, &flags, &reply)
	if told != size || reply.Kind != nbdAck {
		t.Fatalf("%d bytes, %+v", told, reply)
	}

	data := bytes.Repeat([]byte("x"), 512)
	server.SetFaults(Faults{Lies: Range{From: 1024, To: 2048}, Fails: Range{From: 4096, To: size}})
	for _, step := range []struct {
		name   string
		kind   uint16
		offset uint64
		want   uint32
	}{
		{"a write", nbdWrite, 0, 0}, {"a write that is forgotten", nbdWrite, 1536, 0}, {"a write that fails", nbdWrite, 8192, nbdEIO},
		{"a write beyond the end", nbdWrite, size, nbdEINVAL}, {"a flush", nbdFlush, 0, 0}, {"a discard that fails", nbdTrim, 4096, nbdEIO},
	} {
		length, content := uint32(512), data
		if step.kind != nbdWrite {
			content = nil
		}
		if step.kind == nbdFlush {
			length = 0
		}
		if code, _ := c.ask(step.kind, step.offset, length, content); code != step.want {
			t.Errorf("%s: code %d, want %d", step.name, code, step.want)
		}
	}
	if _, read := c.ask(nbdRead, 0, 512, nil); !bytes.Equal(read, data) {
		t.Error("what was written is not read back")
	}
	if _, read := c.ask(nbdRead, 1536, 512, nil); !bytes.Equal(read, make([]byte, 512)) {
		t.Error("what was forgotten is read back")
	}
	if writes := server.Writes(); writes != 5 {
		t.Errorf("%d writes", writes)
	}
	server.SetFaults(Faults{})
	if code, _ := c.ask(nbdWriteZeroes, 0, 512, nil); code != 0 {
		t.Errorf("code %d", code)
	}
	if content, err := os.ReadFile(image); err != nil || !bytes.Equal(content, make([]byte, size)) {
		t.Errorf("the image is not blank: %v", err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
}

func FuzzTalk(f *testing.F) {
	hello, _ := binary.Append(nil, binary.BigEndian, struct {
		Flags          uint32
		Magic          uint64
		Option, Length uint32
	}{3, nbdOption, nbdGo, 0})
	f.Add(hello)
	f.Fuzz(func(t *testing.T, said []byte) {
		file, err := os.CreateTemp(t.TempDir(), "disk")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = file.Close() }()
		s := &Server{file: file, size: 0}
		_ = s.talk(bytes.NewReader(said), io.Discard)
	})
}
