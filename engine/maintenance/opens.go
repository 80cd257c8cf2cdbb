// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"errors"
	"fmt"
	"math/bits"
	"strings"
	"time"
	_ "time/tzdata" // every program knows every zone, also in an image without zone files

	"github.com/robfig/cron/v3"
)

// opens are the times at which a window opens. They are computed on the clock of the wall, which knows no summer time: a time that
// the clocks skip is the moment at which they skip it, and one that they show twice is the first of the two.
type opens struct {
	spec *cron.SpecSchedule
	zone *time.Location
}

var parser = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)

// reference is a year without 29 February, in which every window must open.
var reference = time.Date(2025, time.January, 1, 0, 0, 0, 0, time.UTC)

// allBits are those of a field, without the mark of a star.
const allBits = 1<<63 - 1

func parseOpens(text string, zone *time.Location) (*opens, error) {
	if strings.ContainsAny(text, "=@?") {
		return nil, errors.New("it is no cron expression of five fields")
	}
	parsed, err := parser.Parse(text)
	if err != nil {
		return nil, err
	}
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return nil, errors.New("it is no cron expression of five fields")
	}
	spec.Location = time.UTC
	if n := bits.OnesCount64(spec.Minute & allBits); n != 1 {
		return nil, fmt.Errorf("it opens %d times an hour, and a window opens once an hour at most", n)
	}
	if first := spec.Next(reference.Add(-time.Second)); first.IsZero() || first.Year() > reference.Year() {
		return nil, errors.New("there are years in which it never opens")
	}
	return &opens{spec, zone}, nil
}

// wall is the clock of the wall at a moment, as a time of UTC.
func (o *opens) wall(at time.Time) time.Time {
	local := at.In(o.zone)
	_, offset := local.Zone()
	return time.Unix(local.Unix()+int64(offset), 0).UTC()
}

// moment is when the clock of the wall shows a time, or where it skips the time, when it does that.
func (o *opens) moment(wall time.Time) time.Time {
	_, before := wall.Add(-day).In(o.zone).Zone()
	_, after := wall.Add(day).In(o.zone).Zone()
	for _, offset := range []int{max(before, after), min(before, after)} { // the larger offset is the earlier moment
		at := time.Unix(wall.Unix()-int64(offset), 0).In(o.zone)
		if _, have := at.Zone(); have == offset {
			return at
		}
	}
	skipped, _ := time.Unix(wall.Unix()-int64(before), 0).In(o.zone).ZoneBounds()
	return skipped
}

const day = 24 * time.Hour
