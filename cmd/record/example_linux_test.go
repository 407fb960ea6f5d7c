package record_test

import (
	"fmt"
	"time"

	"github.com/seedwalk/seedwalk/cmd/record"
	"github.com/seedwalk/seedwalk/cmd/record/options"
	"github.com/seedwalk/seedwalk/report/export"
	"github.com/seedwalk/seedwalk/symbol"
)

// The ten functions of process 4711 that use the most CPU time in five seconds.
func Example() {
	result, err := record.Run(options.Options{PID: 4711, Duration: 5 * time.Second,
		Namer: symbol.NewResolver()})
	if err != nil {
		fmt.Println(err)
		return
	}
	functions, err := export.Functions(result.Profile)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range functions[:min(10, len(functions))] {
		fmt.Println(time.Duration(f.Self), f.Name, f.Module)
	}
}
