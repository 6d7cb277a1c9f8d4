"""`dovetail plan` on the slices of real drivers (T-13, T-14, T-16)."""

import json
from pathlib import Path

import pytest

from dovetail.cli.yaml_documents import read_documents
from tests.cli.commands import SLICES, alignments, devices, only_pod, outcomes, plan_json, published, write
from tests.planner.worlds import NUMA, Body, claim, device_class, devices_spec, named, pod, request, template

GPU, NET, CPU, MEMORY = "gpu.nvidia.com", "dra.net", "dra.cpu", "dra.memory"
SRIOV = "sriovnetwork.k8snetworkplumbingwg.io"

GB300 = ("azure-gb300__gpu-nvidia", "azure-gb300__dranet")
TOMORROW = ("dgx-h100__gpu-nvidia__main", "dgx-h100__dranet__main")
R760XA = ("r760xa__gpu-nvidia__v0.4-vfio", "r760xa__sriov")

ON_NUMA_0 = {
    "cel": {"expression": f'device.attributes["{NET}"].rdma && device.attributes["{NET}"].numaNode == 0'}
}
RDMA = {"cel": {"expression": f'device.attributes["{NET}"].rdma'}}


def wanting(folder: Path, spec: Body, *drivers: str) -> Path:
    """A pod with a claim of this spec, and the classes of these drivers."""
    return write(folder, *map(device_class, drivers), claim(spec=spec), pod(claims=[named("claim")]))


def test_eight_gpus_and_a_nic_are_refused_with_numbers(tmp_path: Path) -> None:
    """T-13: a GB300 node has four GPUs, two per NUMA node."""
    published(tmp_path, *GB300)
    spec = devices_spec(request("gpu", GPU, count=8), request("nic", NET))
    message = only_pod(wanting(tmp_path, spec, GPU, NET), status=1)["message"]
    for word in ("8", "4", GPU):
        assert word in message


@pytest.mark.parametrize(("nics", "fits"), [(1, True), (2, True), (3, False)])
def test_a_gpu_goes_with_at_most_two_nics(tmp_path: Path, nics: int, fits: bool) -> None:
    """T-13: two NICs sit on each NUMA node; the refusal names the attribute, the driver and the number."""
    published(tmp_path, *GB300)
    spec = devices_spec(request("gpu", GPU), request("nic", NET, count=nics, selectors=[RDMA]))
    answer = only_pod(wanting(tmp_path, spec, GPU, NET), status=0 if fits else 1)
    assert answer["outcome"] == ("fits" if fits else "doesNotFit")
    if fits:
        assert len(devices(answer)) == 1 + nics
        assert alignments(answer) == [{"attribute": NUMA, "requests": ["gpu", "nic"], "value": 0}]
    else:
        for word in (NUMA, NET, "2 of 3"):
            assert word in answer["message"]


def test_a_selector_by_place_leaves_what_is_there(tmp_path: Path) -> None:
    """T-13: `rdma && numaNode == 0` leaves two of four NICs."""
    published(tmp_path, *GB300)
    every = {
        "name": "nic",
        "exactly": {"deviceClassName": NET, "allocationMode": "All", "selectors": [ON_NUMA_0]},
    }
    answer = only_pod(wanting(tmp_path, devices_spec(every), NET))
    assert len(devices(answer)) == 2
    assert alignments(answer)[0]["value"] == 0


def test_half_of_a_dgx_is_what_one_numa_node_has(tmp_path: Path) -> None:
    """T-13: four GPUs and four NICs fit, eight GPUs do not, and the sentence says that four are there."""
    published(tmp_path, *TOMORROW)
    four = devices_spec(request("gpu", GPU, count=4), request("nic", NET, count=4, selectors=[RDMA]))
    assert len(devices(only_pod(wanting(tmp_path, four, GPU, NET)))) == 8
    eight = devices_spec(request("gpu", GPU, count=8))
    message = only_pod(wanting(tmp_path, eight, GPU, NET), status=1)["message"]
    assert "4 of 8" in message
    assert NUMA in message


def test_two_names_for_one_fact_need_a_mapping(tmp_path: Path) -> None:
    """T-14: `numa` and `numaNode` of two drivers fit with the shipped mapping and wait without."""
    published(tmp_path, *R760XA)
    spec = devices_spec(request("gpu", GPU), request("nic", SRIOV))
    wanting(tmp_path, spec, GPU, SRIOV)
    assert only_pod(tmp_path)["outcome"] == "fits"
    waiting = only_pod(tmp_path, "--no-shipped-mappings")
    assert waiting["outcome"] == "waits"
    assert NUMA in waiting["message"]


def test_a_published_name_of_one_driver_is_missing_on_the_other(tmp_path: Path) -> None:
    """T-14: the refusal says which driver lacks it."""
    published(tmp_path, *R760XA)
    parameters = {"apiVersion": "dovetail.dev/v1alpha1", "kind": "ClaimParameters"}
    ours = [{"opaque": {"driver": "dovetail.dev", "parameters": parameters}}]
    spec = devices_spec(request("gpu", GPU), request("nic", SRIOV), match=f"{GPU}/numa", config=ours)
    message = only_pod(wanting(tmp_path, spec, GPU, SRIOV), status=1)["message"]
    assert f"{GPU}/numa is missing" in message
    assert SRIOV in message


def test_pods_fill_a_node_pair_by_pair(tmp_path: Path) -> None:
    """T-16: four GPUs make four pods; the fifth does not fit on the only node."""
    published(tmp_path, *GB300)
    spec = devices_spec(request("gpu", GPU), request("nic", NET, selectors=[RDMA]))
    names = [f"p{index}" for index in range(5)]
    write(
        tmp_path,
        device_class(GPU),
        device_class(NET),
        template(spec=spec),
        *(pod(n, template="template") for n in names),
    )
    answer = plan_json(tmp_path, status=1)
    assert list(outcomes(answer).values()) == ["fits"] * 4 + ["doesNotFit"]
    taken = [name for each in answer["pods"][:4] for name in devices(each)]
    assert len(taken) == len(set(taken)) == 8
    assert [alignments(each)[0]["value"] for each in answer["pods"][:4]] == [0, 0, 1, 1]


def test_four_drivers_meet_on_one_numa_node(tmp_path: Path) -> None:
    """GPU, NIC, CPU and memory of released drivers, each with its own name for the fact."""
    published(
        tmp_path,
        "dgx-h100__gpu-nvidia__v0.4",
        "dgx-h100__dranet__v1.4",
        "dgx-h100__dra-cpu__v0.2-grouped",
        "dgx-h100__dra-memory",
    )
    spec = devices_spec(request("nic", NET, selectors=[RDMA]), request("cpu", CPU), request("memory", MEMORY))
    answer = only_pod(wanting(tmp_path, spec, NET, CPU, MEMORY))
    assert len(devices(answer)) == 3
    assert alignments(answer)[0]["attribute"] == NUMA


WORLDS = {
    "Azure GB300": ("azure-gb300__gpu-nvidia", "azure-gb300__dranet", "azure-gb300__dra-cpu__main-grouped"),
    "DGX H100, released": (
        "dgx-h100__gpu-nvidia__v0.4",
        "dgx-h100__dranet__v1.4",
        "dgx-h100__dra-cpu__v0.2-grouped",
        "dgx-h100__dra-memory",
    ),
    "DGX H100, tomorrow": (*TOMORROW, "dgx-h100__dra-cpu__main-grouped", "dgx-h100__dra-memory"),
    "DGX H100, lists": (
        "dgx-h100__gpu-nvidia__main-list",
        "dgx-h100__dranet__main-list",
        "dgx-h100__dra-cpu__main-grouped",
    ),
    "R760xa": (*R760XA, "r760xa__dra-cpu__v0.1-grouped", "r760xa__dra-memory"),
    "Azure MI300X": ("azure-mi300x__dranet", "azure-mi300x__gpu-amd__2025-10"),
    "MI300X, 2025": ("amd-mi300x__gpu-amd__2025-10", "amd-mi300x__dranet__v1.4"),
    "MI300X, 2026": ("amd-mi300x__gpu-amd__2026-04", "amd-mi300x__dranet__v1.4"),
    "OCI GB200": ("oci-gb200__gpu-nvidia", "oci-gb200__dranet"),
    "Trainium": ("aws-trn1__dranet-efa", "aws-trn1__neuron-aws"),
    "Xeon": ("intel-xeon__gpu-intel", "intel-xeon__qat-intel", "intel-xeon__dra-cpu__main-grouped"),
}
EXPECTED = json.loads((SLICES / "expected.json").read_text())


def places(files: tuple[str, ...], attribute: str) -> dict[str, dict[str, object]]:
    """What the devices of some files must derive, by driver and device; some derive nothing."""
    found: dict[str, dict[str, object]] = {}
    for file in files:
        drivers = {
            document.value["metadata"]["name"]: document.value["spec"]["driver"]
            for document in read_documents((SLICES / f"{file}.yaml").read_text())
        }
        for key, derived in EXPECTED[f"{file}.yaml"].items():
            slice_name, _, device = key.partition("#")
            if attribute in derived:
                found.setdefault(drivers[slice_name], {})[device] = derived[attribute]
    return found


@pytest.mark.parametrize("world", WORLDS)
def test_one_device_of_each_driver_meets_on_a_numa_node(tmp_path: Path, world: str) -> None:
    """Whatever the drivers call it; the devices that are given are where the data says that they are."""
    files = WORLDS[world]
    known = places(files, "numaNode")
    requests = [request(f"r{index}", driver) for index, driver in enumerate(sorted(known))]
    published(tmp_path, *files)
    wanting(tmp_path, devices_spec(*requests), *known)
    answer = only_pod(tmp_path, "--feature-gates", "DRAListTypeAttributes=true")
    results = answer["claims"][0]["allocation"]["devices"]["results"]
    derived = [known[each["driver"]][each["device"]] for each in results]
    values = [set(value if isinstance(value, list) else [value]) for value in derived]
    common = set.intersection(*values)
    (aligned,) = alignments(answer)
    shown = aligned["value"] if isinstance(aligned["value"], list) else [aligned["value"]]
    assert len(values) == len(known) > 0
    assert common == set(shown)


def test_lists_and_single_values_meet_where_they_overlap(tmp_path: Path) -> None:
    """EPYC with eight NUMA nodes: a GPU on 5 meets a NIC near 4 to 7 and the CPUs of 5, no NVMe of 0."""
    published(tmp_path, "epyc-nps4__multi-driver__lists")
    three = [request("gpu", "gpu.amd.com"), request("nic", NET), request("cpu", CPU)]
    drivers = ("gpu.amd.com", NET, CPU, "dra.nvme")
    answer = only_pod(wanting(tmp_path, devices_spec(*three), *drivers))
    assert devices(answer) == ["gpu.amd.com/gpu-0-128", f"{NET}/pci-0000-c1-00-0", f"{CPU}/cpudevnuma005"]
    assert alignments(answer)[0]["value"] == 5
    four = devices_spec(*three, request("nvme", "dra.nvme"))
    message = only_pod(wanting(tmp_path, four, *drivers), status=1)["message"]
    assert "dra.nvme" in message
    assert NUMA in message
