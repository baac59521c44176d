from pathlib import Path

import fake_instance
from allranks.hardware.network import Device, devices, usable


def test_a_machine_without_rdma_devices(tmp_path: Path) -> None:
    assert devices(tmp_path / "infiniband") == ()


def test_what_the_kernel_says_of_a_port(tmp_path: Path) -> None:
    fake_instance.add_device(tmp_path, "mlx5_ib3", rate="400 Gb/sec (4X NDR)", state="1: DOWN")
    assert devices(tmp_path) == (Device("mlx5_ib3", 1, "InfiniBand", 400.0, "DOWN"),)


def test_both_ports_of_a_device(tmp_path: Path) -> None:
    for port in (2, 1):
        fake_instance.add_device(tmp_path, "mlx5_0", port=port, rate="2.5 Gb/sec (1X SDR)")
    assert [(str(device), device.gbit_s) for device in devices(tmp_path)] == [("mlx5_0:1", 2.5), ("mlx5_0:2", 2.5)]


def test_devices_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for number in (10, 2, 0):
        fake_instance.add_device(tmp_path, f"mlx5_ib{number}")
    assert [device.name for device in devices(tmp_path)] == ["mlx5_ib0", "mlx5_ib2", "mlx5_ib10"]


def test_ethernet_is_no_infiniband(tmp_path: Path) -> None:
    fake_instance.add_accelerated_networking(tmp_path)
    fake_instance.add_device(tmp_path, "mlx5_1", link_layer="Ethernet")
    fake_instance.add_device(tmp_path, "mlx5_0")
    assert [device.name for device in devices(tmp_path) if device.is_infiniband] == ["mlx5_0"]


def test_accelerated_networking_is_none_whatever_it_calls_itself() -> None:
    assert not Device("mlx5_an0", link_layer="InfiniBand").is_infiniband


def test_a_port_that_is_down_is_of_no_use(tmp_path: Path) -> None:
    fake_instance.add_device(tmp_path, "mlx5_ib0", state="2: INIT")
    fake_instance.add_device(tmp_path, "mlx5_ib1")
    assert [device.name for device in usable(devices(tmp_path))] == ["mlx5_ib1"]


def test_a_device_that_goes_away_while_it_is_looked_at(tmp_path: Path) -> None:
    (tmp_path / "mlx5_ib0" / "ports" / "1").mkdir(parents=True)
    (tmp_path / "mlx5_ib1").mkdir()
    assert devices(tmp_path) == (Device("mlx5_ib0", 1, "", None, ""),)
    assert usable(devices(tmp_path)) == ()
