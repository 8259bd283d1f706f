// Command cosplay-node is a DRA driver of Kubernetes: it publishes the GPUs of a node as devices, and prepares those that the
// scheduler has allocated as sessions of cosplay, whose program it runs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/events"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"
)

type options struct {
	projects
	node, kubeconfig, plugins, registry, listen string
	every                                       time.Duration
	root                                        hostRoot
}

func main() {
	var o options
	flag.StringVar(&o.node, "node-name", os.Getenv("NODE_NAME"), "name of the node; default: the variable NODE_NAME")
	flag.StringVar(&o.kubeconfig, "kubeconfig", "", "how to reach the API server; default: as a pod")
	flag.StringVar(&o.cosplay, "cosplay", "cosplay", "the program of cosplay")
	flag.StringVar(&o.folder, "folder", "/var/lib/cosplay-node", "folder of the claims' projects")
	flag.StringVar((*string)(&o.root), "root", "", "in a container: where / of the host is mounted. cosplay is installed in --folder there, which like --plugins and --registry is a path of the host")
	flag.StringVar(&o.simulate, "simulate", "", `simulate these GPUs, like "8 x h200", on a node without any`)
	flag.StringVar(&o.plugins, "plugins", kubeletplugin.KubeletPluginsDir, "folder of kubelet for the sockets of plugins")
	flag.StringVar(&o.registry, "registry", kubeletplugin.KubeletRegistryDir, "folder of kubelet in which plugins register")
	flag.StringVar(&o.sharing, "sharing", "", "let claims share a whole GPU, by time-slice or mps; default: they cannot")
	flag.DurationVar(&o.every, "check-every", time.Minute, "how often the GPUs and what is prepared are checked, and repaired")
	flag.StringVar(&o.listen, "listen", "", `serve /metrics and /healthz at this address, like ":9808"; default: nowhere`)
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), "cosplay-node serves kubelet on a node. cosplay-node classes prints the device classes, for kubectl apply -f -.\n\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	run := o.serve
	if flag.Arg(0) == "classes" {
		run = func(context.Context) error { return printClasses(os.Stdout) }
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "cosplay-node:", err)
		os.Exit(1)
	}
}

// valid refuses options that the driver cannot work with.
func (o options) valid() error {
	switch {
	case o.node == "":
		return errors.New("the name of the node is missing. Fix: --node-name, or NODE_NAME from the downward API")
	case o.sharing != "" && o.sharing != "time-slice" && o.sharing != "mps":
		return fmt.Errorf("--sharing cannot be %q. Fix: time-slice or mps", o.sharing)
	case o.every < time.Second:
		return fmt.Errorf("--check-every cannot be %s. Fix: a second or more", o.every)
	}
	return nil
}

func (o options) serve(ctx context.Context) error {
	if err := o.valid(); err != nil {
		return err
	}
	client, err := o.client()
	if err != nil {
		return fmt.Errorf("reaching the API server: %w", err)
	}
	if o.cosplay, err = o.root.enter(o.cosplay, o.folder); err != nil {
		return err
	}
	if err := errors.Join(o.alone(), permitted(ctx, client)); err != nil {
		return err
	}
	if o.folder, err = filepath.Abs(o.folder); err == nil {
		err = os.MkdirAll(o.folder, 0o700)
	}
	if err != nil {
		return err
	}
	gpus, err := o.gpus(ctx)
	if err != nil {
		return err
	}
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return err
	}
	defer broadcaster.Shutdown()
	d := newDriver(o.projects, o.node, client, broadcaster.NewRecorder(scheme.Scheme, driverName), gpus, o.every)
	data := filepath.Join(o.plugins, driverName)
	if err := os.MkdirAll(data, 0o750); err != nil {
		return err
	}
	helper, err := kubeletplugin.Start(ctx, d, kubeletplugin.DriverName(driverName), kubeletplugin.NodeName(o.node), kubeletplugin.KubeClient(client),
		kubeletplugin.PluginDataDirectoryPath(data), kubeletplugin.RegistrarDirectoryPath(o.registry),
		kubeletplugin.Serialize(false)) // claims are prepared beside each other
	if err != nil {
		return err
	}
	defer helper.Stop()
	if o.listen != "" {
		if err := d.serveHTTP(ctx, o.listen, func() error { return registration(helper) }); err != nil {
			return err
		}
	}
	if err := helper.PublishResources(ctx, d.published()); err != nil && ctx.Err() == nil {
		return fmt.Errorf("publishing the GPUs: %w", err)
	}
	d.keep(ctx, func(r resourceslice.DriverResources) error { return helper.PublishResources(ctx, r) })
	return nil
}

// registration fails if kubelet does not know the driver.
func registration(helper *kubeletplugin.Helper) error {
	status := helper.RegistrationStatus()
	if status == nil {
		return errors.New("kubelet has not registered the driver yet")
	}
	if !status.PluginRegistered {
		return fmt.Errorf("kubelet has refused the driver: %s", status.Error)
	}
	return nil
}

func (o options) client() (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if o.kubeconfig == "" {
		config, err = rest.InClusterConfig()
	}
	if err != nil {
		return nil, err
	}
	// They are read again and again: a token expires.
	for _, file := range []*string{&config.BearerTokenFile, &config.CAFile, &config.CertFile, &config.KeyFile} {
		*file = o.root.own(*file)
	}
	return kubernetes.NewForConfig(config)
}

// others are what NVIDIA's software leaves in kubelet's folder of plugins or beside it, where it manages the GPUs of the node.
var others = map[string]string{
	"gpu.nvidia.com":                    "NVIDIA's DRA driver",
	"compute-domain.nvidia.com":         "NVIDIA's DRA driver for compute domains",
	"../device-plugins/nvidia-gpu.sock": "NVIDIA's device plugin",
}

// alone refuses a node whose GPUs another driver manages: it destroys slices that it has not created.
func (o options) alone() error {
	if o.simulate != "" {
		return nil
	}
	for file, whose := range others {
		path := filepath.Join(o.plugins, file)
		if _, err := os.Stat(path); err == nil {
			return fmt.Errorf("%s manages the GPUs of this node (%s). Fix: switch it off here, for example by a nodeSelector of its DaemonSet, and remove %s", whose, path, path)
		}
	}
	return nil
}
