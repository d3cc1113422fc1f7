export interface Chip {
  readonly name: string;
  readonly cube: number;
  readonly vector: number;
  readonly mhz: number;
  readonly gbps: number;
}
export interface Gpu {
  readonly name: string;
  readonly cores: number;
  readonly mhz: number;
  readonly gbps: number;
}
export function chips(): Chip[];
export function gpus(): Gpu[];
export function setting(): string;
export function words(): Readonly<Record<string, Readonly<Record<string, string>>>>;
