// SPDX-License-Identifier: Apache-2.0

package emulator

import (
	"net/http"
	"slices"
	"strconv"
	"time"
)

// TaskScript is the course of a task that stands for an action. What the action does happens at once.
type TaskScript struct {
	// Takes is how long the task runs.
	Takes time.Duration
	// Stuck: it runs for ever at 50 %.
	Stuck bool
	// Fails: it ends Completed with 100 % and yet Critical.
	Fails bool
	// MonitorVanishes: the monitor is 404 once the task has ended.
	MonitorVanishes bool
}

type task struct {
	id      string
	script  TaskScript
	takes   time.Duration
	started time.Time
}

// taskLimit is how many tasks a BMC remembers.
const taskLimit = 32

func (x *exchange) newTask(script TaskScript) *task {
	b := x.bmc
	id := 1
	if n := len(b.tasks); n > 0 {
		last, _ := strconv.Atoi(b.tasks[n-1].id) // our own ids are numbers
		id = last + 1
	}
	t := &task{id: strconv.Itoa(id), script: script, takes: script.Takes, started: x.fleet.clock.Now()}
	b.tasks = append(b.tasks, t)
	if over := len(b.tasks) - taskLimit; over > 0 {
		b.tasks = slices.Delete(b.tasks, 0, over)
	}
	return t
}

func (x *exchange) startTask(script TaskScript) answer { return x.accepted(x.newTask(script)) }

func monitorPath(id string) string { return root + "/TaskService/TaskMonitors/" + id }

func taskPath(id string) string { return root + "/TaskService/Tasks/" + id }

func (x *exchange) accepted(t *task) answer {
	return answer{
		status: http.StatusAccepted, body: x.taskBody(t),
		header: http.Header{"Location": {x.bmc.uri(monitorPath(t.id))}, "Retry-After": {"1"}},
	}
}

func (x *exchange) ended(t *task) bool {
	return !t.script.Stuck && !x.fleet.clock.Now().Before(t.started.Add(t.takes))
}

func (x *exchange) taskBody(t *task) doc {
	body := x.bmc.resource(taskPath(t.id), "Task.v1_7_1", t.id, "Task")
	body["TaskState"], body["TaskStatus"], body["PercentComplete"] = "Running", "OK", 50
	body["StartTime"] = t.started.UTC().Format(time.RFC3339)
	body["TaskMonitor"] = x.bmc.uri(monitorPath(t.id))
	body["Messages"] = []any{}
	if x.ended(t) {
		body["TaskState"], body["PercentComplete"] = "Completed", 100
		body["EndTime"] = t.started.Add(t.takes).UTC().Format(time.RFC3339)
		if t.script.Fails {
			body["TaskStatus"] = "Critical"
			body["Messages"] = []any{doc{"MessageId": "Base.1.13.InternalError", "Message": "The operation failed."}}
		}
	}
	return body
}

func (x *exchange) findTask() *task {
	i := slices.IndexFunc(x.bmc.tasks, func(t *task) bool { return t.id == x.params["task"] })
	if i < 0 {
		return nil
	}
	return x.bmc.tasks[i]
}

func getTaskService(x *exchange) answer {
	path := root + "/TaskService"
	body := x.bmc.resource(path, "TaskService.v1_2_0", "TaskService", "Task Service")
	body["ServiceEnabled"], body["Tasks"] = true, x.bmc.link(path+"/Tasks")
	return ok(body)
}

func getTasks(x *exchange) answer {
	var paths []string
	for _, t := range x.bmc.tasks {
		paths = append(paths, taskPath(t.id))
	}
	return ok(x.bmc.collection(root+"/TaskService/Tasks", "TaskCollection", "Tasks", paths))
}

func getTask(x *exchange) answer {
	t := x.findTask()
	if t == nil {
		return notFound(x.path)
	}
	return ok(x.taskBody(t))
}

// getTaskMonitor is 202 while the task runs and the outcome afterwards.
func getTaskMonitor(x *exchange) answer {
	t := x.findTask()
	if t == nil || x.ended(t) && t.script.MonitorVanishes {
		return notFound(x.path)
	}
	if !x.ended(t) {
		return x.accepted(t)
	}
	return ok(x.taskBody(t))
}
