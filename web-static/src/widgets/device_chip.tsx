// The selected device: a chip to deselect it, or a menu to select one.
import { useSql } from "../answers";
import { setParameters } from "../router";
import { selection } from "../selection";
import { Adder, Chip } from "./small";

const DEVICES_SQL = "SELECT device_id, name, build FROM devices ORDER BY name, device_id LIMIT 500";

interface DeviceName {
    device_id: number;
    name: string;
    build: string;
}

export function DeviceChip() {
    const { device } = selection.value;
    const devices = useSql<DeviceName>(DEVICES_SQL, {});
    if (device !== "") {
        const known = devices.rows.find((one) => String(one.device_id) === device);
        const name = known?.name ?? (devices.value ? `device_id ${device}` : "…");
        return <Chip label={`Device: ${name}`} onRemove={() => setParameters({ device: "" })} />;
    }
    return (
        <Adder
            label="device"
            choices={devices.rows.map(({ device_id: id, name, build }) => ({
                value: String(id),
                text: build ? `${name} (${build})` : name,
            }))}
            onAdd={(id) => id && setParameters({ device: id })}
        />
    );
}

export function DeviceBar() {
    return (
        <div class="chips selection" role="group" aria-label="Selection">
            <span class="dim">{selection.value.device ? "Only sessions of" : "Sessions of all devices"}</span>
            <DeviceChip />
        </div>
    );
}
