// Collector is an OpenTelemetry collector with a receiver of profiles, and an exporter that
// writes each request that arrives to a file. It takes the collector's flags.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/yamlprovider"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/xexporter"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/service/telemetry/otelconftelemetry"
)

type config struct {
	Folder string `mapstructure:"folder"`
}

// folder writes profiles as protocol buffers. Each file appears under its name when it is whole.
type folder struct {
	consumertest.Consumer
	dir string
}

func (f *folder) Start(context.Context, component.Host) error { return os.MkdirAll(f.dir, 0o700) }
func (f *folder) Shutdown(context.Context) error              { return nil }

func (f *folder) ConsumeProfiles(_ context.Context, p pprofile.Profiles) error {
	data, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(p)
	if err != nil {
		return err
	}
	path := filepath.Join(f.dir, fmt.Sprint(time.Now().UnixNano()))
	if err := os.WriteFile(path+".part", data, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".part", path+".otlp")
}

func main() {
	folders := component.MustNewType("folder")
	create := func(_ context.Context, _ exporter.Settings, c component.Config) (xexporter.Profiles, error) {
		return &folder{consumertest.NewNop(), c.(*config).Folder}, nil
	}
	settings := otelcol.CollectorSettings{
		BuildInfo: component.BuildInfo{Command: "collector", Version: "0.161.0"},
		Factories: func() (otelcol.Factories, error) {
			receivers, err := otelcol.MakeFactoryMap[receiver.Factory](otlpreceiver.NewFactory())
			if err != nil {
				return otelcol.Factories{}, err
			}
			exporters, err := otelcol.MakeFactoryMap[exporter.Factory](xexporter.NewFactory(folders,
				func() component.Config { return &config{} }, xexporter.WithProfiles(create, component.StabilityLevelDevelopment)))
			return otelcol.Factories{Receivers: receivers, Exporters: exporters, Telemetry: otelconftelemetry.NewFactory()}, err
		},
		ConfigProviderSettings: otelcol.ConfigProviderSettings{ResolverSettings: confmap.ResolverSettings{DefaultScheme: "yaml",
			ProviderFactories: []confmap.ProviderFactory{yamlprovider.NewFactory()}}},
	}
	if err := otelcol.NewCommand(settings).Execute(); err != nil {
		log.Fatal(err)
	}
}
