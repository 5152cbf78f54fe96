"""Files as CityLearn and pymgrid ship them are read and played.

The rows here are made up; headers, signs and folders are those of CityLearn 2.1 and pymgrid 1.4.
"""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.energy.drawn import world_of
from tokengym.envs.core.errors import DataError
from tokengym.envs.core.play import play
from tokengym.envs.energy.data import read
from tokengym.envs.energy.world import EnergyWorld
from tokengym.envs.registry import baselines

BUILDING = (
    "Month,Hour,Day Type,Daylight Savings Status,Indoor Temperature [C],"
    "Average Unmet Cooling Setpoint Difference [C],Indoor Relative Humidity [%],"
    "Equipment Electric Power [kWh],DHW Heating [kWh],Cooling Load [kWh],Heating Load [kWh],"
    "Solar Generation [W/kW]"
)
BAEDA = f"{BUILDING},Occupant Count [people],Temperature Set Point [C],HVAC Mode [Off/Cooling]"
HOURS = range(12 * 24)
BIG = {"import_cap_kw": 60, "export_cap_kw": 20, "battery_kwh": 60, "battery_kw": 20}


def write(path: Path, header: str, rows: list[str]) -> Path:
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


def building(path: Path, header: str = BUILDING, first: int = 24, size: float = 1.0) -> Path:
    """A building; the set of 2022 writes numbers with decimals and leaves temperatures empty."""
    more = ",0,30.0,0" * (header == BAEDA)
    rows = []
    for at in HOURS:
        hour = (first - 1 + at) % 24
        sun = max(0.0, 700.0 - 20.0 * (hour - 12.5) ** 2)
        load = size * (0.6 + (1.4 if 17 <= hour <= 21 else 0.0) + at % 5 / 10)
        rows.append(f"7.0,{hour + 1}.0,7.0,0,,,,{load},0,{size},0,{sun}{more}")
    return write(path, header, rows)


def pricing(path: Path, low: float, high: float) -> Path:
    names = "Electricity Pricing [$/kWh]" + "".join(
        f",{hours}h Prediction Electricity Pricing [$/kWh]" for hours in (6, 12, 24)
    )
    rows = [f"{high if at % 24 in range(16, 21) else low}" + f",{low}" * 3 for at in HOURS]
    return write(path, names, rows)


def carbon(path: Path) -> Path:
    return write(path, "kg_CO2/kWh", [f"0.1{at % 7}" for at in HOURS])


def pymgrid_module(folder: Path, columns: int, row: Callable[[int], str]) -> Path:
    """A time series as a scenario of pymgrid stores it: gzipped, with unnamed columns."""
    folder.mkdir()
    names = ",".join(["", *map(str, range(columns))])
    text = "\n".join([names, *(f"{at},{row(at)}" for at in HOURS)])
    (folder / "time_series.csv.gz").write_bytes(gzip.compress(text.encode()))
    return folder / "time_series.csv.gz"


def check_played(world: EnergyWorld) -> None:
    """The optimum is reached, the carbon counted if known."""
    task = world.task("train", 0)
    found = play(world, task, baselines("energy")["oracle"])
    assert found.returns["operator"] == 1.0


def test_citylearn_2022_has_prices_carbon_and_panels_of_its_schema(tmp_path: Path) -> None:
    files = [building(tmp_path / "Building_1.csv"), pricing(tmp_path / "pricing.csv", 0.22, 0.54)]
    files.append(carbon(tmp_path / "carbon_intensity.csv"))
    pv = {"attributes": {"nominal_power": 5.0}}
    buildings = {"Building_1": {"energy_simulation": "Building_1.csv", "pv": pv}}
    (tmp_path / "schema.json").write_text(json.dumps({"buildings": buildings}))
    series = read(files[::-1])
    assert series == read(files)
    assert series.start == 23 * 60
    assert max(series.pv) == pytest.approx(5.0 * 0.695, abs=0.01)
    assert "panels of 5 kW (schema.json)" in series.report.notes
    assert series.carbon[1] == 0.11
    check_played(world_of("day", data=files))


def citylearn_3(folder: Path, *, absolute: bool, minutes: int = 60) -> list[Path]:
    """A building as of version 3, with an EV charger and a washing machine, hours from 0."""
    names = (
        "month,hour,day_type,daylight_savings_status,indoor_dry_bulb_temperature,"
        "average_unmet_cooling_setpoint_difference,indoor_relative_humidity,non_shiftable_load,"
        "dhw_demand,cooling_demand,heating_demand,solar_generation"
    )
    names = names.replace("hour,", "hour,minutes,") if minutes < 60 else names
    share = minutes / 60
    rows = []
    for at in range(12 * 24 * 60 // minutes):
        hour, minute = divmod(at * minutes, 60)
        sun = max(0.0, 700.0 - 20.0 * (hour % 24 - 12.5) ** 2)
        sun = sun * 12.0 / 1000.0 * share if absolute else sun
        clock = f"{hour % 24},{minute}" if minutes < 60 else f"{hour % 24 if at else 0}"
        rows.append(f"8,{clock},1,0,,,,{share * (0.6 + at % 5 / 10)},0.0,0.0,{2 * share},{sun}")
    folder.mkdir(exist_ok=True)
    building = write(folder / "Building_1.csv", names, rows)
    price = write(folder / "pricing.csv", "electricity_pricing", ["0.16"] * len(rows))
    mode = {"generation_mode": "absolute"} if absolute else {}
    own = {
        "energy_simulation": "Building_1.csv",
        "pv": {"autosize": False, "attributes": {"nominal_power": 12.0, **mode}},
        "chargers": {"charger_1_1": {"charger_simulation": "charger_1_1.csv"}},
        "washing_machines": {"washing_machine_1": {"autosize": False}},
    }
    (folder / "schema.json").write_text(json.dumps({"buildings": {"Building_1": own}}))
    charger = write(
        folder / "charger_1_1.csv",
        "electric_vehicle_charger_state,electric_vehicle_id,current_soc",
        ["1,Electric_Vehicle_7,40.9"] * 9,
    )
    return [building, price, charger]


@pytest.mark.parametrize("minutes", [60, 15])
def test_sun_is_a_profile_times_its_panels(minutes: int, tmp_path: Path) -> None:
    profile, absolute = (
        read(citylearn_3(tmp_path / f"{kind}", absolute=kind, minutes=minutes))
        for kind in (False, True)
    )
    assert profile == absolute
    assert (profile.start, profile.minutes, profile.report.refused) == (23 * 60, minutes, 0)
    assert max(profile.pv) == pytest.approx(12.0 * 0.695, abs=0.01)
    assert profile.load[:3] == (0.6, 0.7, 0.8)
    hours = len(profile.load) * minutes / 60
    total = 2 * hours + sum(profile.load) * minutes / 60
    assert str(profile.report).splitlines()[0] == (
        f"{2 * hours:,.0f} of {total:,.0f} kWh of demand are not counted: heating_demand "
        f"{2 * hours:,.0f}; EV charger charger_1_1 is not played; washing machine "
        "washing_machine_1 is not played"
    )
    assert "charger_1_1.csv: CityLearn, a device that is not played" in absolute.report.notes
    assert "sun in kWh a step (schema.json)" in absolute.report.notes


def test_small_sun_needs_a_schema_that_says_what_it_is(tmp_path: Path) -> None:
    building, price, _ = citylearn_3(tmp_path, absolute=True)
    schema = tmp_path / "schema.json"
    schema.write_text(schema.read_text().replace('"absolute"', '"watts"'))
    with pytest.raises(DataError, match=r"generation_mode in schema\.json is 'watts', not per_kw"):
        read([building, price])
    schema.unlink()
    with pytest.raises(DataError, match=r"Building_1\.csv, line 14: solar_generation reaches 8\.3"):
        read([building, price])


def test_the_hour_0_of_citylearn_is_its_hour_24(tmp_path: Path) -> None:
    building, price, _ = citylearn_3(tmp_path, absolute=False)
    series = read([building, price])
    lines = building.read_text().splitlines()
    named = [line.replace("8,0,", "8,24,", 1) for line in lines]
    assert named != lines
    building.write_text("\n".join(named))
    assert read([building, price]) == series
    assert series.cuts == ()


def test_citylearn_2020_has_no_prices_so_that_tariffs_are_drawn(tmp_path: Path) -> None:
    files = [building(tmp_path / "Building_1.csv", first=1, size=6.0)]
    (tmp_path / "schema.json").write_text(
        '{"buildings": {"B": {"energy_simulation": "Building_1.csv"}}}'
    )
    files.append(carbon(tmp_path / "carbon_intensity.csv"))
    series = read(files)
    assert (series.start, series.price, max(series.pv)) == (0, (), 0.0)
    assert "of demand are not counted: cooling_load" in str(series.report).splitlines()[0]
    world = world_of("day", data=files, **BIG)
    assert len({tuple(world.task("train", index).instance["price"]) for index in range(4)}) > 1
    check_played(world)


def test_baeda_is_played_at_its_low_prices(tmp_path: Path) -> None:
    files = [building(tmp_path / "Building_1.csv", BAEDA, first=1)]
    files.append(pricing(tmp_path / "pricing.csv", 0.03, 0.066))
    check_played(world_of("day", data=files))


def test_a_scenario_of_pymgrid_is_read_with_its_negative_load(tmp_path: Path) -> None:
    load = pymgrid_module(tmp_path / "LoadModule", 1, lambda at: f"{-20.0 - 10.0 * (at % 24 > 16)}")
    sun = pymgrid_module(tmp_path / "RenewableModule", 1, lambda at: f"{30.0 * (8 < at % 24 < 16)}")
    grid = pymgrid_module(
        tmp_path / "GridModule", 4, lambda at: f"{0.59 if at % 24 > 16 else 0.22},0.0,0.24,1.0"
    )
    series = read([load, sun, grid])
    assert (min(series.load), max(series.load)) == (20.0, 30.0)
    assert series.carbon[0] == 0.24
    check_played(world_of("day", data=[load, sun, grid], **BIG))
    # Ten of its scenarios have a genset and no grid: no prices, then.
    assert read([load, sun]).price == ()


def test_the_load_and_illuminance_of_pymgrid_need_no_grid(tmp_path: Path) -> None:
    name = "Electricity:Facility [kW](Hourly)"
    load = write(tmp_path / "load.csv", name, [f"{14.0 + at % 24}" for at in HOURS])
    light = [f"{max(0, 90000 - 2500 * (at % 24 - 12) ** 2)}" for at in HOURS]
    sun = write(tmp_path / "Houston.csv", "GH illum (lx)", light)
    co2 = write(tmp_path / "co2_caiso.csv", "\ufeffCO2_CISO_I_kwh", ["0.2"] * len(HOURS))
    series = read([load, sun, co2])
    assert max(series.pv) == 4.0
    assert series.pv[9] == round(4.0 * 67500 / 90000, 2)
    check_played(world_of("day", data=[load, sun, co2], pv_scale=5, **BIG))
    with pytest.raises(DataError, match="a load needs its sun"):
        read([load, co2])
