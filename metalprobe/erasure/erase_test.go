// SPDX-License-Identifier: Apache-2.0

package erasure

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

func TestEraseWithoutACommand(t *testing.T) {
	const size = 70 << 20 // read back in part
	for name, c := range map[string]struct {
		change func(*fakeDisk)
		volume bool
		steps  string
		err    string
	}{
		"an overwrite": {nil, false, "secure-discard Unsupported, discard Unsupported, zero Succeeded", ""},
		"a discard that does nothing, which an overwrite follows": {func(d *fakeDisk) { d.discards = func(bool) error { return nil } }, false,
			"secure-discard Succeeded, zero Succeeded", ""},
		"a discard that fails is no reason to stop": {func(d *fakeDisk) { d.discards = func(bool) error { return errors.New("EIO") } }, false,
			"secure-discard Failed, discard Failed, zero Succeeded", ""},
		"a volume gets no discard": {func(d *fakeDisk) { d.discards = func(bool) error { return nil } }, true, "zero Succeeded", ""},
		"a write error names its place": {func(d *fakeDisk) { d.failsAt = 33<<20 + 5 }, true, "zero Failed",
			"overwriting with zeros: writing at byte 34603013 of 73400320: input/output error; replace the disk"},
		"a flush that fails": {func(d *fakeDisk) { d.flush = errors.New("EIO") }, true, "zero Failed", "overwriting with zeros: flushing: EIO"},
		"a disk that forgets what is written to its upper half": {func(d *fakeDisk) { d.keepsFrom = size / 2 }, true, "zero Succeeded", "data was found at byte 36"},
		"a disk that cannot be read":                            {func(d *fakeDisk) { d.read = errors.New("EIO") }, true, "zero Succeeded", "reading back at byte 0: EIO"},
	} {
		t.Run(name, func(t *testing.T) {
			disk := fullDisk(size)
			if c.change != nil {
				c.change(disk)
			}
			var percents []int32
			order := Order{Progress: func(percent int32) { percents = append(percents, percent) }}
			got, err := Erase(t.Context(), Target{Medium: disk, Media: policyv1alpha1.MediaHDD, Volume: c.volume}, order)
			if (err == nil) != (c.err == "") || (err != nil && !strings.Contains(err.Error(), c.err)) {
				t.Fatalf("got %v, want %q", err, c.err)
			}
			if steps := strings.Join(summary(got.Steps), ", "); steps != c.steps {
				t.Errorf("steps: got %s, want %s", steps, c.steps)
			}
			if err != nil {
				if got.Term != "" {
					t.Errorf("an erase that failed reached %s", got.Term)
				}
				return
			}
			if !disk.empty() || got.Term != policyv1alpha1.TermClear || got.Verification.ReadBytes != 258*verifyChunk {
				t.Errorf("got %+v", got)
			}
			if len(percents) < 10 || percents[len(percents)-1] != 99 {
				t.Errorf("progress: %v", percents)
			}
		})
	}
}

func TestADeadlineFitsCapacityAndMethod(t *testing.T) {
	limits := map[string]time.Duration{}
	disk := fullDisk(1 << 20)
	order := Order{Floor: time.Second, Expect: func(step string, limit time.Duration) { limits[step] = limit }}
	if _, err := Erase(t.Context(), Target{Medium: hugeDisk{disk}}, order); err == nil {
		t.Error("a disk of 4 TB was erased in memory")
	}
	if got, want := limits[MethodZero], 2*80_000*time.Second; got != want {
		t.Errorf("an overwrite of 4 TB may take %s, want %s", got, want)
	}
	if got := limits["identify"]; got != time.Second {
		t.Errorf("to identify may take %s", got)
	}
}

// hugeDisk says that it is larger than it is.
type hugeDisk struct{ *fakeDisk }

func (hugeDisk) Size() int64 { return 4_000_000_000_000 }

func (d hugeDisk) WriteAt(part []byte, offset int64) (int, error) {
	if offset >= d.fakeDisk.Size() {
		return 0, errors.New("no space")
	}
	return d.fakeDisk.WriteAt(part, offset)
}

func TestRecheckFindsOneByte(t *testing.T) {
	disk := fullDisk(1 << 20)
	clear(disk.data)
	got, err := Recheck(t.Context(), disk)
	if err != nil || !got.Passed || got.ReadBytes != 1<<20 || got.Kind != policyv1alpha1.VerifiedZeros {
		t.Errorf("got %+v, %v", got, err)
	}
	disk.data[1<<20-1] = 1
	if got, err = Recheck(t.Context(), disk); err == nil || got.Passed {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestSamplesOfAnEmptyDiskAreFilled(t *testing.T) {
	disk := fullDisk(4 << 20)
	clear(disk.data)
	samples, err := takeSamples(t.Context(), disk, func(int64) int64 { return 0 })
	if err != nil || len(samples) != maxSamples {
		t.Fatalf("%d samples, %v", len(samples), err)
	}
	if _, _, err := samplesGone(t.Context(), disk, samples); err == nil || !strings.Contains(err.Error(), "258 of 258 samples") {
		t.Errorf("a disk that kept everything: %v", err)
	}
	clear(disk.data)
	if _, zeros, err := samplesGone(t.Context(), disk, samples); err != nil || !zeros {
		t.Errorf("an empty disk: %t, %v", zeros, err)
	}
}

func TestASignatureThatIsLeftIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		offset int
		text   string
		want   string
	}{
		"GPT":                      {512, "EFI PART", "GPT"},
		"GPT with sectors of 4096": {4096, "EFI PART", "GPT"},
		"GPT at the end":           {4<<20 - 512, "EFI PART", "GPT"},
		"XFS":                      {0, "XFSB", "XFS"},
		"LVM":                      {0x218, "LVM2 001", "LVM"},
		"md 1.2":                   {4096, "\xfc\x4e\x2b\xa9", "md"},
		"md 1.0, at the end":       {4<<20 - 8192, "\xfc\x4e\x2b\xa9", "md"},
		"ext4":                     {1024 + 0x38, "\x53\xef\x01\x00", "ext2, ext3 or ext4"},
		"MBR":                      {446, "\x80\x00\x00\x00\x83" + strings.Repeat("\x00", 59) + "\x55\xaa", "MBR"},
		"the mark of an MBR alone": {510, "\x55\xaa", ""},
	} {
		t.Run(name, func(t *testing.T) {
			disk := fullDisk(4 << 20)
			clear(disk.data)
			copy(disk.data[c.offset:], c.text)
			_, _, err := samplesGone(t.Context(), disk, nil)
			if (err == nil) != (c.want == "") || (err != nil && !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestSampleOffsetsCoverBothEndsAndStayWithinTheDisk(t *testing.T) {
	for _, size := range []int64{1, verifyChunk, verifyChunk * (verifySamples + 2), verifyChunk*(verifySamples+2) + 512, 4 << 40} {
		for _, pick := range []func(int64) int64{func(int64) int64 { return 0 }, func(n int64) int64 { return n - 1 }} {
			offsets := sampleOffsets(size, verifyChunk, pick)
			if offsets[0] != 0 {
				t.Errorf("size %d: the first place is %d", size, offsets[0])
			}
			if last := offsets[len(offsets)-1]; last >= size || last+verifyChunk < size {
				t.Errorf("size %d: the last place is %d", size, last)
			}
			for _, offset := range offsets {
				if offset < 0 || offset >= size || offset%512 != 0 {
					t.Errorf("size %d: place %d is outside, or within a sector", size, offset)
				}
			}
		}
	}
}

func TestAnEraseThatIsToldToStopSaysWhy(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("no longer wanted"))
	_, err := Erase(ctx, Target{Medium: fullDisk(1 << 20)}, Order{})
	if err == nil || !strings.Contains(err.Error(), "stopped at byte 0 of 1048576: no longer wanted") {
		t.Error(err)
	}
}

func FuzzSignature(f *testing.F) {
	f.Add([]byte("XFSB"), true)
	f.Add(make([]byte, 513), false)
	f.Fuzz(func(t *testing.T, part []byte, begin bool) {
		if name := Signature(part, begin); name != "" && constant(part) {
			t.Errorf("%s in %d equal bytes", name, len(part))
		}
	})
}

// The last sector of such a disk lies behind its last whole block.
func TestASignatureAtAnEndThatIsNoWholeBlockIsFound(t *testing.T) {
	const size = 4<<20 + 512
	for name, c := range map[string]struct {
		offset int
		text   string
		want   string
	}{
		"GPT":    {size - 512, "EFI PART", "GPT"},
		"md 1.0": {4<<20 - 8192, "\xfc\x4e\x2b\xa9", "md"},
	} {
		t.Run(name, func(t *testing.T) {
			disk := fullDisk(size)
			clear(disk.data)
			copy(disk.data[c.offset:], c.text)
			if _, _, err := samplesGone(t.Context(), disk, nil); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// pendingDisk cannot read its first block until that is written.
type pendingDisk struct {
	*fakeDisk
	written bool
}

func (d *pendingDisk) ReadAt(part []byte, offset int64) (int, error) {
	if offset < Block && !d.written {
		return 0, errors.New("medium error")
	}
	return d.fakeDisk.ReadAt(part, offset)
}

func (d *pendingDisk) WriteAt(part []byte, offset int64) (int, error) {
	d.written = d.written || offset < Block
	return d.fakeDisk.WriteAt(part, offset)
}

// Else a drive whose own erase was cut off could never be overwritten.
func TestABlockThatCannotBeReadIsFilledBeforeTheErase(t *testing.T) {
	disk := &pendingDisk{fakeDisk: fullDisk(4 << 20)}
	samples, err := takeSamples(t.Context(), disk, func(int64) int64 { return 0 })
	if err != nil || len(samples) != maxSamples {
		t.Fatalf("%d samples, %v", len(samples), err)
	}
	if _, _, err := samplesGone(t.Context(), disk, samples); err == nil || !strings.Contains(err.Error(), "258 of 258 samples") {
		t.Errorf("a disk that kept everything: %v", err)
	}
	disk = &pendingDisk{fakeDisk: fullDisk(4 << 20)}
	disk.failsAt = 0
	if _, err := takeSamples(t.Context(), disk, func(int64) int64 { return 0 }); err == nil || !strings.Contains(err.Error(), "writing a sample at byte 0") {
		t.Errorf("a block that cannot be written either: %v", err)
	}
}
