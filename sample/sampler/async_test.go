package sampler

import "testing"

// A method's role in chains follows from its name.
func TestResumes(t *testing.T) {
	const box = "System.Runtime.CompilerServices.AsyncTaskMethodBuilder<int>.AsyncStateMachineBox<App.Get>."
	for name, want := range map[string]resumes{
		"App.Get (async)":                                    {body: "App.Get"},
		"App.Get(string) (async)":                            {body: "App.Get(string)"},
		"App.Get":                                            {},
		box + "MoveNext(Thread)":                             {},
		box + "ExecutionContextCallback":                     {help: true},
		"System.Threading.ExecutionContext.RunInternal":      {help: true},
		"System.Threading.Tasks.Task.ExecuteWithThreadLocal": {task: true},
		"System.Runtime.CompilerServices.AsyncMethodBuilderCore.Start<App.Get>": {kick: true},
	} {
		if want.name = name; resumesOf(name) != want {
			t.Errorf("%s: %+v", name, resumesOf(name))
		}
	}
}
