// SPDX-License-Identifier: Apache-2.0

package emulator

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
)

func getVersions(*exchange) answer { return ok(doc{"v1": root + "/"}) }

func getServiceRoot(x *exchange) answer {
	b, p := x.bmc, x.bmc.profile
	body := b.resource(root, "ServiceRoot.v1_15_0", "RootService", "Root Service")
	body["@odata.id"] = root + "/"
	body["RedfishVersion"] = "1.15.0"
	body["UUID"] = b.uuid
	body["Vendor"], body["Product"] = p.Manufacturer, p.Manufacturer+" BMC"
	for _, name := range []string{"Systems", "Managers", "Chassis", "SessionService", "AccountService"} {
		body[name] = b.link(root + "/" + name)
	}
	body["Tasks"] = b.link(root + "/TaskService")
	body["Links"] = doc{"Sessions": b.link(root + "/SessionService/Sessions")}
	e := p.Expand
	expand := doc{
		"ExpandAll": e.Supported && e.ExpandAll, "Levels": e.Supported && e.Levels,
		"Links": e.Supported && e.ExpandAll, "NoLinks": e.Supported,
	}
	if e.Supported && e.Levels {
		expand["MaxLevels"] = e.MaxLevels
	}
	body["ProtocolFeaturesSupported"] = doc{
		"ExpandQuery": expand, "FilterQuery": false, "SelectQuery": false, "ExcerptQuery": false, "OnlyMemberQuery": false,
	}
	return ok(body)
}

func getSessionService(x *exchange) answer {
	path := root + "/SessionService"
	body := x.bmc.resource(path, "SessionService.v1_1_8", "SessionService", "Session Service")
	body["ServiceEnabled"] = true
	body["SessionTimeout"] = int(x.bmc.profile.SessionTimeout.Seconds())
	body["Sessions"] = x.bmc.link(path + "/Sessions")
	return ok(body)
}

func sessionPath(id string) string { return root + "/SessionService/Sessions/" + id }

func getSessions(x *exchange) answer {
	var paths []string
	for _, s := range x.bmc.sessions {
		paths = append(paths, sessionPath(s.ID))
	}
	return ok(x.bmc.collection(root+"/SessionService/Sessions", "SessionCollection", "Session Collection", paths))
}

func (b *bmc) sessionBody(s *session) doc {
	body := b.resource(sessionPath(s.ID), "Session.v1_5_0", s.ID, "User Session")
	body["UserName"] = s.Username
	return body
}

func getSession(x *exchange) answer {
	s := x.bmc.sessionByID(x.params["session"])
	if s == nil {
		return notFound(x.path)
	}
	return ok(x.bmc.sessionBody(s))
}

func postSession(x *exchange) answer {
	var in struct{ UserName, Password string }
	if bad := x.decode(&in); bad != nil {
		return *bad
	}
	b := x.bmc
	a, right := b.login(in.UserName, in.Password)
	if !right {
		return failure(http.StatusUnauthorized, "ResourceAtUriUnauthorized", "The user name or the password is wrong.")
	}
	x.user = a.name
	x.fleet.log.change(x.write, func(w *Write) { w.User = a.name })
	s := b.openSession(a.name)
	if s == nil {
		return failure(http.StatusServiceUnavailable, "SessionLimitExceeded",
			"The session establishment failed due to the number of simultaneous sessions exceeding the limit of the implementation.")
	}
	return answer{
		status: http.StatusCreated, body: b.sessionBody(s),
		header: http.Header{"X-Auth-Token": {s.token}, "Location": {b.uri(sessionPath(s.ID))}},
	}
}

func deleteSession(x *exchange) answer {
	s := x.bmc.sessionByID(x.params["session"])
	if s == nil {
		return notFound(x.path)
	}
	x.bmc.sessions = slices.DeleteFunc(x.bmc.sessions, func(o *session) bool { return o == s })
	return success(x.bmc.profile.ResetStatus)
}

func getAccountService(x *exchange) answer {
	path, p := root+"/AccountService", x.bmc.profile
	body := x.bmc.resource(path, "AccountService.v1_12_0", "AccountService", "Account Service")
	body["Accounts"] = x.bmc.link(path + "/Accounts")
	body["AccountLockoutThreshold"] = p.LockoutAfter
	body["AccountLockoutDuration"] = int(p.LockoutFor.Seconds())
	body["MinPasswordLength"], body["MaxPasswordLength"] = 1, 40
	return ok(body)
}

func accountPath(id string) string { return root + "/AccountService/Accounts/" + id }

func (x *exchange) account() *account {
	i := slices.IndexFunc(x.bmc.accounts, func(a *account) bool { return a.id == x.params["account"] })
	if i < 0 {
		return nil
	}
	return x.bmc.accounts[i]
}

func getAccounts(x *exchange) answer {
	var paths []string
	for _, a := range x.bmc.accounts {
		paths = append(paths, accountPath(a.id))
	}
	slices.SortFunc(paths, func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return strings.Compare(a, b)
	})
	return ok(x.bmc.collection(root+"/AccountService/Accounts", "ManagerAccountCollection", "Accounts", paths))
}

func (x *exchange) accountBody(a *account) doc {
	body := x.bmc.resource(accountPath(a.id), "ManagerAccount.v1_9_0", a.id, "User Account")
	body["UserName"], body["RoleId"], body["Enabled"], body["Password"] = a.name, a.role, a.enabled, nil
	body["Locked"] = a.lockedUntil.After(x.fleet.clock.Now())
	return body
}

func getAccount(x *exchange) answer {
	a := x.account()
	if a == nil {
		return notFound(x.path)
	}
	return ok(x.accountBody(a))
}

// accountInput holds what a client may say of an account; nil: not said.
type accountInput struct {
	UserName, Password, RoleId *string //nolint:staticcheck // Redfish spells it so.
	Enabled, Locked            *bool
}

func postAccount(x *exchange) answer {
	b := x.bmc
	if b.profile.AccountSlots > 0 {
		a := failure(http.StatusMethodNotAllowed, "OperationNotAllowed", "Accounts are fixed slots: PATCH a free one.")
		a.header = http.Header{"Allow": {"GET"}}
		return a
	}
	var in accountInput
	if bad := x.decode(&in); bad != nil {
		return *bad
	}
	if in.UserName == nil || *in.UserName == "" || in.Password == nil || *in.Password == "" {
		return failure(http.StatusBadRequest, "CreateFailedMissingReqProperties", "UserName and Password are required.")
	}
	if x.nameTaken(*in.UserName, nil) {
		return failure(http.StatusBadRequest, "ResourceAlreadyExists", "An account with this user name exists already.")
	}
	id := 0
	for _, a := range b.accounts {
		n, _ := strconv.Atoi(a.id) // our own ids are numbers
		id = max(id, n)
	}
	a := &account{id: strconv.Itoa(id + 1), role: "ReadOnly", enabled: true}
	a.apply(in)
	b.accounts = append(b.accounts, a)
	return answer{status: http.StatusCreated, body: x.accountBody(a), header: http.Header{"Location": {b.uri(accountPath(a.id))}}}
}

func (x *exchange) nameTaken(name string, but *account) bool {
	return slices.ContainsFunc(x.bmc.accounts, func(a *account) bool { return a != but && name != "" && a.name == name })
}

func (a *account) apply(in accountInput) {
	if in.UserName != nil {
		a.name = *in.UserName
	}
	if in.RoleId != nil {
		a.role = *in.RoleId
	}
	if in.Enabled != nil {
		a.enabled = *in.Enabled
	}
	if in.Password != nil {
		a.setPassword(*in.Password)
	}
	if in.Locked != nil && !*in.Locked {
		a.setPassword(a.password)
	}
}

func patchAccount(x *exchange) answer {
	a := x.account()
	if a == nil {
		return notFound(x.path)
	}
	if refused := x.bmc.profile.precondition(x.req, x.accountBody(a)); refused != nil {
		return *refused
	}
	var in accountInput
	if bad := x.decode(&in); bad != nil {
		return *bad
	}
	switch {
	case x.bmc.profile.AccountSlots > 0 && a.id == "1":
		return failure(http.StatusBadRequest, "ResourceCannotBeModified", "Slot 1 is reserved.")
	case in.Password != nil && *in.Password == "":
		return badProperty("Password", "it is empty")
	case in.UserName != nil && x.nameTaken(*in.UserName, a):
		return badProperty("UserName", "it is taken")
	}
	former := a.name
	a.apply(in)
	if in.Password != nil || a.name != former || !a.enabled {
		x.bmc.endSessionsOf(former)
	}
	return x.patched(func() doc { return x.accountBody(a) })
}

func deleteAccount(x *exchange) answer {
	a := x.account()
	switch {
	case a == nil:
		return notFound(x.path)
	case a == x.bmc.accounts[0]:
		return failure(http.StatusBadRequest, "ResourceCannotBeDeleted", "The last administrator cannot be deleted.")
	case x.bmc.profile.AccountSlots > 0:
		*a = account{id: a.id, role: "None"}
	default:
		x.bmc.accounts = slices.DeleteFunc(x.bmc.accounts, func(o *account) bool { return o == a })
	}
	return success(x.bmc.profile.ResetStatus)
}

// patched answers an accepted PATCH as the make does.
func (x *exchange) patched(body func() doc) answer {
	if x.bmc.profile.PatchStatus == http.StatusNoContent {
		return noContent()
	}
	return ok(body())
}
