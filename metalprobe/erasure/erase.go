// SPDX-License-Identifier: Apache-2.0

package erasure

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

const (
	// DefaultFloor is the shortest time that any step is given: a kernel resets a drive that does not answer, and tries again,
	// for minutes.
	DefaultFloor = 5 * time.Minute
	// slowest is the throughput in bytes a second that a disk must keep at least half of.
	slowest = 50_000_000
)

// Protocol is the language of a drive's own commands.
type Protocol string

const (
	// NoProtocol is a disk that is only read, written and discarded.
	NoProtocol Protocol = ""
	// NVMe is a drive that takes NVMe admin commands.
	NVMe Protocol = "NVMe"
	// ATA is a drive that takes ATA commands inside of SCSI ones.
	ATA Protocol = "ATA"
	// SCSI is a drive that takes SCSI commands.
	SCSI Protocol = "SCSI"
)

// Target is a disk that was opened exclusively, and what is known of it.
type Target struct {
	Medium Medium
	Media  policyv1alpha1.MediaType
	// Volume says that the disk is a volume of a RAID adapter: commands and discards do not reach the drives behind it.
	Volume bool
	// Protocol and Commands reach the drive itself; without them it is overwritten only.
	Protocol Protocol
	Commands Commands
}

// Order is how a disk is erased, and who is told of it.
type Order struct {
	// AcceptDriveErase lets a verified erase by the drive's own command stand, without an overwrite after it.
	AcceptDriveErase bool
	// Floor is the shortest time that a step is given; zero means DefaultFloor.
	Floor time.Duration
	// Expect is told how long the step that begins now may take. Nil tells nobody.
	Expect func(step string, limit time.Duration)
	// Progress is told the percentage that is done. Nil tells nobody.
	Progress func(percent int32)
	// Step is told each method that was tried, when it has ended. Nil tells nobody.
	Step func(step policyv1alpha1.EraseStep)
	// Announce must store a message outside of the machine before it returns. A drive gets a password only after that.
	Announce func(ctx context.Context, message string) error
}

// Outcome is what an erase did, also one that failed.
type Outcome struct {
	// Method names the steps that succeeded, joined by a plus.
	Method string
	// Steps are the methods in the order in which they were tried.
	Steps []policyv1alpha1.EraseStep
	// Term is what the erase reached; empty where nothing is proved.
	Term policyv1alpha1.SanitizationTerm
	// Verification is how the erase was checked; nil where it was not.
	Verification *policyv1alpha1.EraseVerification
}

// Erase erases a disk by the strongest command that the drive offers, checks that the command did what it says, overwrites with zeros
// unless the order accepts the command alone, and reads back. A repeat erases again. When ctx ends it stops at the next chunk.
func Erase(ctx context.Context, target Target, order Order) (Outcome, error) {
	e := &eraser{target: target, order: order, disk: target.Medium, pick: rand.Int64N}
	err := e.run(ctx)
	return e.outcome(), err
}

// Recheck reads a disk again that a former boot erased, and fails where it reads anything but zeros.
func Recheck(ctx context.Context, disk Medium) (*policyv1alpha1.EraseVerification, error) {
	e := &eraser{disk: disk, pick: rand.Int64N}
	err := e.verifyZeros(ctx)
	return e.verification, err
}

type eraser struct {
	target       Target
	order        Order
	disk         Medium
	pick         func(n int64) int64
	steps        []policyv1alpha1.EraseStep
	verification *policyv1alpha1.EraseVerification
}

func (e *eraser) run(ctx context.Context) error {
	methods, err := e.methods(ctx)
	if err != nil {
		return err
	}
	verified, err := e.byDrive(ctx, methods)
	if err != nil {
		return err
	}
	if verified && e.order.AcceptDriveErase {
		return nil
	}
	e.verification = nil // it spoke of what the overwrite replaces
	if !e.target.Volume && !verified {
		e.discard()
	}
	e.expect(MethodZero, e.byCapacity())
	size, begin := e.disk.Size(), int32(0)
	if verified {
		begin = 50
	}
	err = overwrite(ctx, e.disk, func(done int64) { e.progress(begin + int32(done/(size/int64(100-begin)+1))) })
	e.step(MethodZero, "direct, with a flush", "", err)
	if err != nil {
		return fmt.Errorf("overwriting with zeros: %w", err)
	}
	return e.verifyZeros(ctx)
}

// byDrive tries the drive's methods until one is seen to have erased, and says whether one did.
func (e *eraser) byDrive(ctx context.Context, methods []method) (bool, error) {
	var samples []sample
	for _, m := range methods {
		if m.lacks != "" {
			e.add(policyv1alpha1.EraseStep{Method: m.name, Result: policyv1alpha1.EraseUnsupported, Answer: m.lacks})
			continue
		}
		if samples == nil {
			e.expect("samples", e.floor())
			var err error
			if samples, err = takeSamples(ctx, e.disk, e.pick); err != nil {
				return false, err
			}
		}
		limit := e.limit(m.estimate)
		e.expect(m.name, limit+e.floor())
		answer, err := m.run(ctx, limit, e.half)
		if err == nil {
			err = e.verifySamples(ctx, samples)
		}
		e.step(m.name, m.parameters, answer, err)
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		if err == nil {
			return true, nil
		}
	}
	return false, nil
}

// half reports progress of a drive's command: half of the whole where an overwrite follows.
func (e *eraser) half(percent int32) {
	if !e.order.AcceptDriveErase {
		percent /= 2
	}
	e.progress(percent)
}

func (e *eraser) verifySamples(ctx context.Context, samples []sample) error {
	e.expect("verification", e.floor())
	read, zeros, err := samplesGone(ctx, e.disk, samples)
	v := &policyv1alpha1.EraseVerification{Kind: policyv1alpha1.VerifiedSamplesGone, ReadBytes: read, Passed: err == nil}
	if zeros && err == nil {
		v.Kind = policyv1alpha1.VerifiedZeros
	}
	v.Limits = fmt.Sprintf("no overwrite: %d samples of %d bytes from before the erase, and both ends, were read; "+
		"data that the drive left between the samples, or in blocks that it does not show, is not found", len(samples), Block)
	e.verification = v
	return err
}

func (e *eraser) verifyZeros(ctx context.Context) error {
	e.expect("verification", e.floor())
	read, err := readZeros(ctx, e.disk, e.pick)
	v := &policyv1alpha1.EraseVerification{Kind: policyv1alpha1.VerifiedZeros, ReadBytes: read, Passed: err == nil}
	v.Limits = "every byte was read back; blocks that the drive retired or keeps in reserve were not"
	if size := e.disk.Size(); read < size {
		v.Limits = fmt.Sprintf("every write and the flush succeeded; %d of %d bytes were read back, which shows that the disk keeps what is "+
			"written; blocks that the drive retired or keeps in reserve were not read", read, size)
	}
	e.verification = v
	return err
}

// discard tells the disk that nothing on it is needed any more, securely where it can. It proves nothing: an overwrite follows.
func (e *eraser) discard() {
	e.expect(MethodDiscard, e.byCapacity())
	for _, d := range []struct {
		method string
		secure bool
	}{{MethodSecureDiscard, true}, {MethodDiscard, false}} {
		err := e.disk.Discard(d.secure)
		if errors.Is(err, errors.ErrUnsupported) {
			e.add(policyv1alpha1.EraseStep{Method: d.method, Result: policyv1alpha1.EraseUnsupported, Answer: err.Error()})
			continue
		}
		e.step(d.method, "", "", err)
		if err == nil {
			return
		}
	}
}

func (e *eraser) step(method, parameters, answer string, err error) {
	s := policyv1alpha1.EraseStep{Method: method, Parameters: clip(parameters, maxParameters), Result: policyv1alpha1.EraseSucceeded, Answer: answer}
	if err != nil {
		s.Result = policyv1alpha1.EraseFailed
		s.Answer = strings.TrimPrefix(answer+"; "+err.Error(), "; ")
	}
	e.add(s)
}

func (e *eraser) add(s policyv1alpha1.EraseStep) {
	s.Answer = clip(s.Answer, maxAnswer)
	e.steps = append(e.steps, s)
	if e.order.Step != nil {
		e.order.Step(s)
	}
}

func (e *eraser) outcome() Outcome {
	o := Outcome{Steps: e.steps, Verification: e.verification, Method: MethodOf(e.steps)}
	if len(o.Steps) > maxSteps {
		o.Steps = o.Steps[len(o.Steps)-maxSteps:]
	}
	o.Term = Term(e.target.Media, e.steps, e.verification, e.target.Volume)
	return o
}

// Bounds of the API.
const (
	maxSteps      = 16
	maxMethod     = 128
	maxParameters = 256
	maxAnswer     = 512
)

// preparations are steps that erase nothing.
var preparations = []string{MethodATAUnlock, MethodAwait, MethodRelease}

// MethodOf names the erases that succeeded, joined by a plus.
func MethodOf(steps []policyv1alpha1.EraseStep) string {
	var names []string
	for _, s := range steps {
		if s.Result == policyv1alpha1.EraseSucceeded && !slices.Contains(preparations, s.Method) {
			names = append(names, s.Method)
		}
	}
	return clip(strings.Join(names, "+"), maxMethod)
}

func clip(text string, limit int) string {
	if len(text) > limit {
		text = text[:limit]
	}
	return strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "")
}

func (e *eraser) expect(step string, limit time.Duration) {
	if e.order.Expect != nil {
		e.order.Expect(step, limit)
	}
}

func (e *eraser) progress(percent int32) {
	if e.order.Progress != nil {
		e.order.Progress(max(0, min(percent, 99)))
	}
}

func (e *eraser) floor() time.Duration {
	if e.order.Floor > 0 {
		return e.order.Floor
	}
	return DefaultFloor
}

// byCapacity is twice the time that the slowest disk needs to be written whole.
func (e *eraser) byCapacity() time.Duration { return e.limit(0) }

// limit is twice the drive's own estimate, or twice the time by capacity where it gives none, and never below the floor.
func (e *eraser) limit(estimate time.Duration) time.Duration {
	if estimate <= 0 {
		estimate = time.Duration(e.disk.Size()/slowest) * time.Second
	}
	return max(e.floor(), 2*estimate)
}
