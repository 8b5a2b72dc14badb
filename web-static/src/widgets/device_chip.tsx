// The selected device: a chip to deselect it, or a menu to select one.
import { useQuestion } from "../answers";
import { setParameters } from "../router";
import { selection } from "../selection";
import { Adder, Chip } from "./small";

export function DeviceChip() {
    const { device } = selection.value;
    const devices = useQuestion("web.device_names", {});
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
