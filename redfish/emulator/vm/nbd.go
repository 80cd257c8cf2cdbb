// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// Range is a part of a disk, To not included. The zero value is empty.
type Range struct{ From, To int64 }

func (r Range) meets(offset, length int64) bool { return offset < r.To && offset+length > r.From }

// Faults are what is wrong with a disk.
type Faults struct {
	// Lies reports success for writes into that range and forgets them; a discard counts as a write.
	Lies Range
	// Fails answers writes into that range with EIO.
	Fails Range
	// Delay is how long each request takes.
	Delay time.Duration
}

// Server is a disk over NBD (the protocol of fixed-newstyle negotiation), which holds its content in a file and can be broken.
type Server struct {
	file     *os.File
	size     int64
	listener net.Listener
	work     sync.WaitGroup

	mu     sync.Mutex
	faults Faults
	writes int
	conns  map[net.Conn]bool
}

// Serve makes a disk of a raw image and listens on a unix socket, for Disk.NBD.
func Serve(image, socket string) (*Server, error) {
	file, err := os.OpenFile(image, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	listener, err := net.Listen("unix", socket) //nolint:noctx // it ends with Close
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	s := &Server{file: file, size: info.Size(), listener: listener, conns: map[net.Conn]bool{}}
	s.work.Add(1)
	go s.accept()
	return s, nil
}

// SetFaults replaces what is wrong with the disk; the zero value heals it.
func (s *Server) SetFaults(faults Faults) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = faults
}

// Writes counts the requests that change content: writes, zero-outs and discards.
func (s *Server) Writes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes
}

// Close hangs up and waits for the last request.
func (s *Server) Close() error {
	err := s.listener.Close()
	s.mu.Lock()
	for conn := range s.conns {
		_ = conn.Close()
	}
	s.mu.Unlock()
	s.work.Wait()
	return errors.Join(err, s.file.Close())
}

func (s *Server) accept() {
	defer s.work.Done()
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.conns[conn] = true
		s.mu.Unlock()
		s.work.Add(1)
		go func() {
			defer s.work.Done()
			// A client that hangs up or speaks nonsense is the end of its connection and of nothing else.
			_ = s.talk(bufio.NewReader(conn), conn)
			_ = conn.Close()
			s.mu.Lock()
			delete(s.conns, conn)
			s.mu.Unlock()
		}()
	}
}

// The words of the protocol.
const (
	nbdMagic        = 0x4e42444d41474943 // NBDMAGIC
	nbdOption       = 0x49484156454f5054 // IHAVEOPT
	nbdOptionReply  = 0x3e889045565a9
	nbdRequest      = 0x25609513
	nbdReply        = 0x67446698
	nbdAck          = 1
	nbdInfo         = 3
	nbdUnsupported  = 1<<31 | 1
	nbdExportName   = 1
	nbdAbort        = 2
	nbdInfoOption   = 6
	nbdGo           = 7
	nbdFlags        = 1 | 1<<2 | 1<<3 | 1<<5 | 1<<6 // has flags, flush, FUA, trim, write zeroes
	nbdRead         = 0
	nbdWrite        = 1
	nbdDisconnect   = 2
	nbdFlush        = 3
	nbdTrim         = 4
	nbdWriteZeroes  = 6
	nbdLongest      = 64 << 20
	nbdEIO          = 5
	nbdEINVAL       = 22
	nbdLongestParam = 4096
)

func send(to io.Writer, words ...any) error {
	var out []byte
	for _, word := range words {
		var err error
		if out, err = binary.Append(out, binary.BigEndian, word); err != nil {
			return err
		}
	}
	_, err := to.Write(out)
	return err
}

func receive(from io.Reader, words ...any) error {
	for _, word := range words {
		if err := binary.Read(from, binary.BigEndian, word); err != nil {
			return err
		}
	}
	return nil
}

// talk negotiates and then answers requests.
func (s *Server) talk(from io.Reader, to io.Writer) error {
	if err := send(to, uint64(nbdMagic), uint64(nbdOption), uint16(3)); err != nil {
		return err
	}
	var flags uint32
	if err := receive(from, &flags); err != nil {
		return err
	}
	for {
		begins, err := s.negotiate(from, to, flags)
		if err != nil {
			return err
		}
		if begins {
			return s.answer(from, to)
		}
	}
}

// negotiate answers one option; begins says that requests come next.
func (s *Server) negotiate(from io.Reader, to io.Writer, flags uint32) (begins bool, err error) {
	var magic uint64
	var option, length uint32
	if err := receive(from, &magic, &option, &length); err != nil {
		return false, err
	}
	if magic != nbdOption || length > nbdLongestParam {
		return false, fmt.Errorf("NBD: option %d is no option", option)
	}
	if _, err := io.CopyN(io.Discard, from, int64(length)); err != nil {
		return false, err
	}
	reply := func(kind uint32, data ...any) error {
		size := 0
		for _, word := range data {
			size += binary.Size(word)
		}
		return send(to, append([]any{uint64(nbdOptionReply), option, kind, uint32(size)}, data...)...)
	}
	switch option {
	case nbdExportName:
		words := []any{uint64(s.size), uint16(nbdFlags)}
		if flags&2 == 0 {
			words = append(words, [124]byte{})
		}
		return true, send(to, words...)
	case nbdGo, nbdInfoOption:
		return option == nbdGo, errors.Join(reply(nbdInfo, uint16(0), uint64(s.size), uint16(nbdFlags)), reply(nbdAck))
	case nbdAbort:
		return false, errors.Join(reply(nbdAck), io.EOF)
	default:
		return false, reply(nbdUnsupported)
	}
}

// answer carries requests out, one after the other.
func (s *Server) answer(from io.Reader, to io.Writer) error {
	for {
		var request struct {
			Magic       uint32
			Flags, Kind uint16
			Handle      uint64
			Offset      uint64
			Length      uint32
		}
		if err := receive(from, &request); err != nil {
			return err
		}
		if request.Magic != nbdRequest || request.Kind == nbdDisconnect {
			return nil
		}
		var data []byte
		if request.Kind == nbdWrite {
			if request.Length > nbdLongest {
				return fmt.Errorf("NBD: a request of %d bytes is too long", request.Length)
			}
			data = make([]byte, request.Length)
			if _, err := io.ReadFull(from, data); err != nil {
				return err
			}
		}
		code, read := s.carryOut(request.Kind, int64(request.Offset), int64(request.Length), data)
		if err := send(to, uint32(nbdReply), code, request.Handle, read); err != nil {
			return err
		}
	}
}

// carryOut does what a request asks for, or what the faults make of it.
func (s *Server) carryOut(kind uint16, offset, length int64, data []byte) (code uint32, read []byte) {
	changes := kind == nbdWrite || kind == nbdTrim || kind == nbdWriteZeroes
	s.mu.Lock()
	faults := s.faults
	if changes {
		s.writes++
	}
	s.mu.Unlock()
	if faults.Delay > 0 {
		time.Sleep(faults.Delay)
	}
	switch {
	case offset < 0 || offset+length > s.size || kind == nbdRead && length > nbdLongest:
		return nbdEINVAL, nil
	case changes && faults.Fails.meets(offset, length):
		return nbdEIO, nil
	case changes && faults.Lies.meets(offset, length):
		return 0, nil
	}
	return s.touch(kind, offset, length, data)
}

// touch reads or writes the file.
func (s *Server) touch(kind uint16, offset, length int64, data []byte) (code uint32, read []byte) {
	var err error
	switch kind {
	case nbdRead:
		read = make([]byte, length)
		_, err = s.file.ReadAt(read, offset)
	case nbdWrite:
		_, err = s.file.WriteAt(data, offset)
	case nbdTrim, nbdWriteZeroes:
		zeros := make([]byte, 1<<20)
		for done := int64(0); done < length && err == nil; done += int64(len(zeros)) {
			_, err = s.file.WriteAt(zeros[:min(length-done, int64(len(zeros)))], offset+done)
		}
	case nbdFlush:
	default:
		return nbdEINVAL, nil
	}
	if err != nil {
		return nbdEIO, nil
	}
	return 0, read
}
