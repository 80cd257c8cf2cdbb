// SPDX-License-Identifier: Apache-2.0

package emulator

import (
	"net/http"
	"strings"
	"sync"
	"time"
)

// Paths that the faults of the catalogue name.
const (
	pathSystems  = root + "/Systems"
	pathSystem   = root + "/Systems/*"
	pathReset    = root + "/Systems/*/Actions/ComputerSystem.Reset"
	pathSessions = root + "/SessionService/Sessions"
	pathStorage  = root + "/Systems/*/Storage"
	pathDrive    = root + "/Systems/*/Storage/*/Drives/*"
	pathAll      = root + "/**"
)

// SlowAnswer answers after 25 s.
func SlowAnswer() Fault {
	return Fault{Name: "SlowAnswer", Path: pathAll, Action: Action{Delay: 25 * time.Second}}
}

// TrickledBody sends the systems at one byte a second.
func TrickledBody() Fault {
	return Fault{Name: "TrickledBody", Method: "GET", Path: pathSystem, Action: Action{BytesPerSecond: 1}}
}

// Dropped never answers; the client gives up.
func Dropped() Fault { return Fault{Name: "Dropped", Path: pathAll, Action: Action{Drop: true}} }

// ConnectionReset resets the connection instead of answering.
func ConnectionReset() Fault {
	return Fault{Name: "ConnectionReset", Path: pathAll, Action: Action{Reset: true}}
}

// NoKeepAlive ends the connection after every answer.
func NoKeepAlive() Fault {
	return Fault{Name: "NoKeepAlive", Path: "**", Action: Action{CloseConnection: true}}
}

// ServiceUnavailable answers 503 with Retry-After.
func ServiceUnavailable() Fault {
	return Fault{Name: "ServiceUnavailable", Path: pathAll, Action: Action{
		Status: http.StatusServiceUnavailable, Header: map[string]string{"Retry-After": "5"},
	}}
}

// TooManyRequests answers 429 with Retry-After.
func TooManyRequests() Fault {
	return Fault{Name: "TooManyRequests", Path: pathAll, Action: Action{
		Status: http.StatusTooManyRequests, Header: map[string]string{"Retry-After": "5"},
	}}
}

// InternalError answers 500.
func InternalError() Fault {
	return Fault{Name: "InternalError", Path: pathAll, Action: Action{Status: 500}}
}

// SessionLimit refuses logins with 503; Basic still works.
func SessionLimit() Fault {
	return Fault{Name: "SessionLimit", Method: "POST", Path: pathSessions, Action: Action{
		Status: 503, Body: `{"error":{"code":"Base.1.13.SessionLimitExceeded","message":"Too many sessions."}}`,
	}}
}

// UnauthorizedOnce answers one read of a system 401, although the session is good.
func UnauthorizedOnce() Fault {
	return Fault{Name: "UnauthorizedOnce", Method: "GET", Path: pathSystem, Count: 1, Action: Action{Status: 401}}
}

// PasswordChangeRequired answers everything but the root and logins 403.
func PasswordChangeRequired() Fault {
	return Fault{Name: "PasswordChangeRequired", Path: root + "/*s/**", Method: "GET,PATCH,POST", Action: Action{
		Status: 403, Body: `{"error":{"code":"Base.1.13.PasswordChangeRequired","message":"The password must be changed."}}`,
	}}
}

// LoginWithoutToken answers a login 201 and leaves the token out.
func LoginWithoutToken() Fault {
	return Fault{Name: "LoginWithoutToken", Method: "POST", Path: pathSessions, Action: Action{
		Header: map[string]string{"X-Auth-Token": ""},
	}}
}

// SystemMissing answers 404 for every system, as while the BMC boots.
func SystemMissing() Fault {
	return Fault{Name: "SystemMissing", Path: pathSystem, Action: Action{Status: 404}}
}

// SystemBroken answers 500 for every system.
func SystemBroken() Fault {
	return Fault{Name: "SystemBroken", Path: pathSystem, Action: Action{Status: 500}}
}

// EmptyMembers lists no systems.
func EmptyMembers() Fault {
	return Fault{Name: "EmptyMembers", Method: "GET", Path: pathSystems, Action: Action{
		Set: map[string]any{"Members": []any{}, "Members@odata.count": 0},
	}}
}

// NullMembers lists null as systems.
func NullMembers() Fault {
	return Fault{Name: "NullMembers", Method: "GET", Path: pathSystems, Action: Action{Set: map[string]any{"Members": nil}}}
}

// HollowMembers lists one system without a link.
func HollowMembers() Fault {
	return Fault{Name: "HollowMembers", Method: "GET", Path: pathSystems, Action: Action{
		Set: map[string]any{"Members": []any{map[string]any{}}},
	}}
}

func bodyFault(name, body string) Fault {
	return Fault{Name: name, Method: "GET", Path: root + "/Systems**", Action: Action{Status: http.StatusOK, Body: body}}
}

// BodyNull answers reads of systems with null.
func BodyNull() Fault { return bodyFault("BodyNull", "null") }

// BodyArray answers reads of systems with a list.
func BodyArray() Fault { return bodyFault("BodyArray", "[]") }

// BodyString answers reads of systems with a text.
func BodyString() Fault { return bodyFault("BodyString", `""`) }

// BodyEmpty answers reads of systems with zero bytes.
func BodyEmpty() Fault { return bodyFault("BodyEmpty", "") }

// HTMLErrorPage answers 200 with a page for people.
func HTMLErrorPage() Fault {
	f := bodyFault("HTMLErrorPage", "<!DOCTYPE html><html><body><h1>The service is starting</h1></body></html>")
	f.Header = map[string]string{"Content-Type": "text/html"}
	return f
}

// deepBody is made once, because the catalogue is looked up often.
var deepBody = sync.OnceValue(func() string {
	const depth = 100_000
	return `{"Oem":` + strings.Repeat("[", depth) + strings.Repeat("]", depth) + `}`
})

// DeepNesting answers with a list in a list, 100000 deep.
func DeepNesting() Fault { return bodyFault("DeepNesting", deepBody()) }

// HugeBody answers reads of systems with 256 MiB.
func HugeBody() Fault {
	return Fault{Name: "HugeBody", Method: "GET", Path: root + "/Systems**", Action: Action{PadTo: 256 << 20}}
}

// TruncatedJSON breaks reads of systems off after 100 bytes.
func TruncatedJSON() Fault {
	return Fault{Name: "TruncatedJSON", Method: "GET", Path: root + "/Systems**", Action: Action{Truncate: 100}}
}

// NextLinkLoop lets every collection of systems continue with itself.
func NextLinkLoop() Fault {
	return Fault{Name: "NextLinkLoop", Method: "GET", Path: pathSystems, Action: Action{
		Set: map[string]any{"Members@odata.nextLink": "{path}"},
	}}
}

// RedirectLoop redirects to the same place.
func RedirectLoop() Fault {
	return Fault{Name: "RedirectLoop", Path: root + "/Systems**", Action: Action{Redirect: "{path}"}}
}

// RedirectElsewhere redirects to a URL, with 307 so that a careless client repeats method, body and credentials there.
// "{path}" in the URL stands for the request's path.
func RedirectElsewhere(url string) Fault {
	return Fault{Name: "RedirectElsewhere", Path: pathAll, Action: Action{Status: http.StatusTemporaryRedirect, Redirect: url}}
}

// WrongTypes sends numbers for texts and texts for numbers.
func WrongTypes() Fault {
	return Fault{Name: "WrongTypes", Method: "GET", Path: pathSystem, Action: Action{Set: map[string]any{
		"Id": 7, "ProcessorSummary/Count": "2", "MemorySummary/TotalSystemMemoryGiB": "256", "SKU": 12, "Status": "OK",
	}}}
}

// PowerReads lets every system show that power state; nil is null.
func PowerReads(value any) Fault {
	return Fault{Name: "PowerReads", Method: "GET", Path: pathSystem, Action: Action{Set: map[string]any{"PowerState": value}}}
}

// PowerMissing leaves PowerState out.
func PowerMissing() Fault {
	return Fault{Name: "PowerMissing", Method: "GET", Path: pathSystem, Action: Action{Remove: []string{"PowerState"}}}
}

// StalePower lets power reads show the state of 10 s ago.
func StalePower() Fault {
	return Fault{Name: "StalePower", Method: "GET", Path: root + "/Systems**", Action: Action{StalePower: 10 * time.Second}}
}

// PatchRefusedOnce answers one change of a system 400 and does not say what is wrong with it.
func PatchRefusedOnce() Fault {
	return Fault{Name: "PatchRefusedOnce", Method: "PATCH", Path: root + "/Systems/**", Count: 1, Action: Action{Status: 400}}
}

// PreconditionFailed answers changes of systems 412.
func PreconditionFailed() Fault {
	return Fault{Name: "PreconditionFailed", Method: "PATCH", Path: pathSystem, Count: 1, Action: Action{Status: 412}}
}

// PreconditionRequired answers changes of systems 428 once.
func PreconditionRequired() Fault {
	return Fault{Name: "PreconditionRequired", Method: "PATCH", Path: pathSystem, Count: 1, Action: Action{Status: 428}}
}

// SuffixedETag sends entity tags as a compressing proxy leaves them.
func SuffixedETag() Fault {
	return Fault{Name: "SuffixedETag", Method: "GET", Path: pathSystem, Action: Action{
		Header: map[string]string{"ETag": `W/"5d3a-gzip"`}, Set: map[string]any{"@odata.etag": `W/"5d3a"`},
	}}
}

// ResetConflict answers resets 409, as in the self test.
func ResetConflict() Fault {
	return Fault{Name: "ResetConflict", Method: "POST", Path: pathReset, Action: Action{Status: 409}}
}

// ResetIgnored accepts resets and does nothing.
func ResetIgnored() Fault {
	return Fault{Name: "ResetIgnored", Method: "POST", Path: pathReset, Action: Action{Ignore: true}}
}

// PatchIgnored accepts changes of systems and does nothing.
func PatchIgnored() Fault {
	return Fault{Name: "PatchIgnored", Method: "PATCH", Path: root + "/Systems/**", Action: Action{Ignore: true}}
}

// ResetTimesOutButHappens carries resets out and never answers.
func ResetTimesOutButHappens() Fault {
	return Fault{Name: "ResetTimesOutButHappens", Method: "POST", Path: pathReset, Action: Action{Execute: true, Drop: true}}
}

// ResetBreaksButHappens carries resets out and resets the connection.
func ResetBreaksButHappens() Fault {
	return Fault{Name: "ResetBreaksButHappens", Method: "POST", Path: pathReset, Action: Action{Execute: true, Reset: true}}
}

// InsertRefused answers inserts of virtual media 400, as a BMC does that cannot open the URL.
func InsertRefused() Fault {
	return Fault{Name: "InsertRefused", Method: "POST,PATCH", Path: root + "/**/VirtualMedia/**", Action: Action{
		Status: 400, Body: `{"error":{"code":"Base.1.13.GeneralError","message":"Unable to mount remote share."}}`,
	}}
}

// EjectIgnored accepts ejects of virtual media and leaves the image in.
func EjectIgnored() Fault {
	return Fault{Name: "EjectIgnored", Method: "POST", Path: root + "/**/VirtualMedia/*/Actions/*.EjectMedia", Action: Action{Ignore: true}}
}

func taskFault(name string, script TaskScript) Fault {
	return Fault{Name: name, Method: "POST", Path: pathReset, Action: Action{AsTask: &script}}
}

// ResetAsTask answers resets 202 with a task of 2 s.
func ResetAsTask() Fault { return taskFault("ResetAsTask", TaskScript{Takes: 2 * time.Second}) }

// TaskMonitorVanishes is ResetAsTask with a monitor that is 404 at the end.
func TaskMonitorVanishes() Fault {
	return taskFault("TaskMonitorVanishes", TaskScript{Takes: 2 * time.Second, MonitorVanishes: true})
}

// TaskStuck is ResetAsTask with a task that stays at 50 %.
func TaskStuck() Fault { return taskFault("TaskStuck", TaskScript{Stuck: true}) }

// TaskFails is ResetAsTask with a task that ends at 100 %, Completed and Critical.
func TaskFails() Fault { return taskFault("TaskFails", TaskScript{Fails: true}) }

// ClockUnset shows a BMC that does not know the time.
func ClockUnset() Fault {
	return Fault{Name: "ClockUnset", Method: "GET", Path: root + "/Managers/*", Action: Action{Set: map[string]any{
		"LastResetTime": "0000-00-00T00:00:00+00:00", "DateTime": "1970-01-01T00:00:12+00:00",
	}}}
}

// StorageMissing answers 404 for the list of storage, as a BMC does that knows none.
func StorageMissing() Fault {
	return Fault{Name: "StorageMissing", Method: "GET", Path: pathStorage, Action: Action{Status: http.StatusNotFound}}
}

// StorageEmpty lists no storage, as an iLO 5 does.
func StorageEmpty() Fault {
	return Fault{Name: "StorageEmpty", Method: "GET", Path: pathStorage, Action: Action{Set: map[string]any{"Members": []any{}}}}
}

// DriveBroken answers 500 for every drive.
func DriveBroken() Fault {
	return Fault{Name: "DriveBroken", Method: "GET", Path: pathDrive, Action: Action{Status: http.StatusInternalServerError}}
}

// requestFaults lists the constructors that need nothing, for fault files and the catalogue.
func requestFaults() []Fault {
	reads := func(name string, value any) Fault {
		f := PowerReads(value)
		f.Name = name
		return f
	}
	return []Fault{
		SlowAnswer(), TrickledBody(), Dropped(), ConnectionReset(), NoKeepAlive(), ServiceUnavailable(), TooManyRequests(),
		InternalError(), SessionLimit(), UnauthorizedOnce(), PasswordChangeRequired(), LoginWithoutToken(), SystemMissing(),
		SystemBroken(), EmptyMembers(), NullMembers(), HollowMembers(), BodyNull(), BodyArray(), BodyString(), BodyEmpty(),
		HTMLErrorPage(), DeepNesting(), HugeBody(), TruncatedJSON(), NextLinkLoop(), RedirectLoop(), WrongTypes(),
		reads("PowerReadsNull", nil), reads("PowerReadsEmpty", ""), reads("PowerReadsPaused", "Paused"),
		reads("PowerReadsPoweringOn", "PoweringOn"), reads("PowerReadsPoweringOff", "PoweringOff"), reads("PowerReadsNonsense", "Standby"),
		PowerMissing(), StalePower(), PatchRefusedOnce(), PreconditionFailed(), PreconditionRequired(), SuffixedETag(), ResetConflict(),
		ResetIgnored(), PatchIgnored(), ResetTimesOutButHappens(), ResetBreaksButHappens(), ResetAsTask(),
		TaskMonitorVanishes(), TaskStuck(), TaskFails(), ClockUnset(), InsertRefused(), EjectIgnored(),
		StorageMissing(), StorageEmpty(), DriveBroken(),
	}
}
